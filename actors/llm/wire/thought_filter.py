"""Leaving out what a model thinks before it answers, in every marking that is common. Pure.

Most families write a thought between two marks (:data:`MARKS`), at the front of an answer or on a line of its own
within it; in other places, and in code, the marks are text: an answer may well speak of them. If a thought is never
closed, there is no answer behind it. If a model's template opens the thought for it, the model writes only the closing
mark, and everything before that is a thought. In a stream that text was already passed on, so the stream begins anew
(``ThoughtFilter.restarts``).

gpt-oss writes messages in channels, ``<|channel|>analysis<|message|>...<|end|>``, and ``final`` alone is an answer.
Where its special tokens were stripped, ``analysis...assistantfinal...`` is left.
"""

import re

MARKS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<antthinking>", "</antthinking>"),
    ("<mm:think>", "</mm:think>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<inner_monologue>", "</inner_monologue>"),
    ("<reflection>", "</reflection>"),
    ("[think]", "[/think]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>", "<unused95>"),
)
"""The marks at the beginning and end of a thought, by family, in lower case; case does not matter."""

_IN_WORDS = (
    ("here is my thought process:", "here is my response:"),
    ("here's my thought process:", "here's my response:"),
)
"""Marks made of words, which count only at the very start."""

_CROSSED = frozenset(("<think>", "<thinking>"))
"""Marks that small models close with the closing mark of another."""

_CLOSES = tuple(close for _, close in MARKS)
_TAGS = frozenset(mark for pair in MARKS for mark in pair)
_STRIPPED, _STRIPPED_END = "analysis", "assistantfinal"
_MESSAGE, _CHANNEL = "<|message|>", "<|channel|>"
_HEADS = ("<|start|>", _CHANNEL, _MESSAGE)
_OVER = ("<|end|>", "<|return|>", "<|call|>", "<|start|>", _CHANNEL)
_FENCE = "```"
_LONGEST_HEAD = 300
_LONGEST_MARK = max(len(mark) for pair in (*MARKS, *_IN_WORDS) for mark in pair)
_QUOTES = frozenset("`\"'\u201c\u2018\u00ab")
_SIGNS = frozenset("<[\u25c1")
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_SPENT = (
    "<|end|>",
    "<|return|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<end_of_turn>",
)
_IN_SPEECH = re.compile("|".join(map(re.escape, ("\n", *_TAGS))))
_IN_CHANNEL = re.compile("|".join(map(re.escape, ("\n", *_TAGS, *_OVER))))


def without_thoughts(text: str) -> str:
    """Return a whole text without its thoughts, surrounding white space, and marks for the end of a turn."""
    spoken = ThoughtFilter()
    text_out = (spoken.take(text) + spoken.end()).strip()
    while (mark := next((mark for mark in _SPENT if text_out.endswith(mark)), "")) and text_out:
        text_out = text_out.removesuffix(mark).rstrip()
    return text_out


class ThoughtFilter:
    """Removes thoughts from a text that comes in parts, however it is split.

    Args:
        thinking: Whether the text begins within a thought, because the model's template opens it.

    Attributes:
        restarts: How often the text returned so far turned out to be a thought, so that the text started again.
    """

    def __init__(self, *, thinking: bool = False) -> None:
        self.restarts = 0
        self._held = ""
        self._low = ""
        self._at = 0
        self._over = False
        self._closes: tuple[str, ...] = _CLOSES if thinking else ()
        self._front = self._fresh = self._line = True
        self._fenced = self._head = self._channels = False
        self._inline = 0
        self._last = ""

    def take(self, part: str) -> str:
        """Return the text that can be sent after ``part``: without thoughts, or white space before the first word."""
        return self._read(part, over=False)

    def end(self) -> str:
        """Return the rest when no further part comes."""
        return self._read("", over=True)

    def _read(self, part: str, *, over: bool) -> str:
        self._held, self._at, self._over = self._held + part, 0, over
        self._low = self._held.translate(_LOWER)
        text_out: list[str] = []
        while self._at < len(self._held) and self._step(text_out):
            pass
        self._held = self._held[self._at :]
        return "".join(text_out)

    def _step(self, text_out: list[str]) -> bool:
        """Read on; return False where more text is needed first."""
        if self._closes:
            return self._leave_thought()
        if self._head:
            return self._leave_head()
        if self._fresh and self._held[self._at].isspace():
            self._at += 1
            return True
        if self._line or self._fresh:
            if self._enters():
                return True
            if not self._over and self._may_enter():
                return False
        return self._speak(text_out)

    def _leave_thought(self) -> bool:
        found = [(place, close) for close in self._closes if (place := self._low.find(close, self._at)) >= 0]
        if not found:
            # Only the possible beginning of the closing mark is kept of a thought, which can be of any length.
            self._at = max(self._at, len(self._held) - max(map(len, self._closes)) + 1)
            return False
        place, close = min(found)
        self._at = place if close in _HEADS else place + len(close)
        self._closes, self._head = (), close in _HEADS
        self._fresh = self._line = True
        return True

    def _leave_head(self) -> bool:
        """Read the head of a message in channels: all messages but the final one are thoughts."""
        end = self._low.find(_MESSAGE, self._at)
        if end < 0 and len(self._held) - self._at <= _LONGEST_HEAD:
            return False
        end = end if end >= 0 else len(self._held)
        head = self._low[self._at : end]
        self._at = min(len(self._held), end + len(_MESSAGE))
        self._head, self._channels = False, True
        self._fresh = self._line = True
        if _CHANNEL in head and not head.rpartition(_CHANNEL)[2].strip().startswith("final"):
            self._closes = _OVER
        return True

    def _enters(self) -> bool:
        """Whether a thought, or a message in channels, begins here; skips the opening mark."""
        low, at = self._low, self._at
        if low.startswith(_FENCE, at) or self._fenced:
            return False
        if self._front and low.startswith(_HEADS, at):
            self._head = True
            return True
        for opening, close in (*MARKS, *(_IN_WORDS if self._front else ())):
            if low.startswith(opening, at):
                crossed = opening in _CROSSED
                self._at = at + len(opening)
                self._closes = tuple(end for begin, end in MARKS if begin in _CROSSED) if crossed else (close,)
                return True
        after = at + len(_STRIPPED)
        if self._front and self._held.startswith(_STRIPPED, at) and self._held[after : after + 1].isupper():
            self._at, self._closes = after, (_STRIPPED_END,)
            return True
        return False

    def _may_enter(self) -> bool:
        rest = self._low[self._at : self._at + _LONGEST_MARK]
        if len(rest) == _LONGEST_MARK:
            return False
        marks = [_FENCE] if self._fenced else [_FENCE, *(opening for opening, _ in MARKS)]
        if self._front:
            marks += [*_HEADS, *(opening for opening, _ in _IN_WORDS), _STRIPPED]
        return any(mark.startswith(rest) for mark in marks if mark != rest or mark == _STRIPPED)

    def _speak(self, text_out: list[str]) -> bool:
        if self._line and self._low.startswith(_FENCE, self._at):
            self._fenced = not self._fenced
            self._tell(text_out, self._at + len(_FENCE))
        found = (_IN_CHANNEL if self._channels else _IN_SPEECH).search(self._low, self._at)
        if found is None:
            self._tell(text_out, len(self._held) - (0 if self._over else self._unfinished()))
            return False
        self._tell(text_out, found.start())
        mark = found[0]
        if mark == "\n":
            self._tell(text_out, found.end())
            self._line = True
        elif self._fenced or self._last in _QUOTES:
            self._tell(text_out, found.end())
        elif mark in _OVER:
            self._at, self._head = (found.start(), True) if mark in _HEADS else (found.end(), False)
            self._front = self._fresh = self._line = True
        elif mark not in _CLOSES or self._inline:
            self._inline += -1 if mark in _CLOSES else 1
            self._tell(text_out, found.end())
        else:
            text_out.clear()
            self.restarts += 1
            self._at, self._last = found.end(), ""
            self._fresh = self._line = True
        return True

    def _tell(self, text_out: list[str], end: int) -> None:
        if end > self._at:
            text_out.append(self._held[self._at : end])
            self._last = self._held[end - 1]
            self._front = self._fresh = self._line = False
            self._at = end

    def _unfinished(self) -> int:
        """Return how many characters at the end may be the beginning of a mark."""
        marks = (*_TAGS, *_OVER) if self._channels else _TAGS
        for place in range(max(self._at, len(self._low) - _LONGEST_MARK + 1), len(self._low)):
            rest = self._low[place:]
            if rest[0] in _SIGNS and any(mark.startswith(rest) for mark in marks):
                return len(rest)
        return 0
