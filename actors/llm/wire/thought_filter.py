"""Removes what a model thinks before it answers, in every notation that is common. Pure.

Most models write a thought between two marks (:data:`MARKS`), at the front of an answer or on a line of its own within
it; elsewhere, and in code, the marks are text: an answer may be about them. If a thought is never closed, no answer
follows it. If a model's template opens the thought for the model, it writes only the closing mark, and everything
before that is a thought. In a stream that text was passed on already, so the stream begins again
(``ThoughtFilter.restarts``).

gpt-oss writes messages in channels, ``<|channel|>analysis<|message|>...<|end|>``, and only the channel ``final`` is an
answer. If its special tokens were stripped, ``analysis...assistantfinal...`` is left.
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
"""The marks at the beginning and end of a thought, a pair for each notation, in lower case; case does not matter."""

_WORD_MARKS = (
    ("here is my thought process:", "here is my response:"),
    ("here's my thought process:", "here's my response:"),
)
"""Marks made of words, which count only at the very start."""

_INTERCHANGEABLE = frozenset(("<think>", "<thinking>"))
"""Opening marks whose thoughts small models close with the closing mark of the other."""

_CLOSING_MARKS = tuple(close for _, close in MARKS)
_ALL_MARKS = frozenset(mark for pair in MARKS for mark in pair)

_STRIPPED, _STRIPPED_END = "analysis", "assistantfinal"
"""What is left of gpt-oss's channels without its special tokens: before a thought, and before the answer."""

_MESSAGE, _CHANNEL = "<|message|>", "<|channel|>"
_HEAD_STARTS = ("<|start|>", _CHANNEL, _MESSAGE)
"""Marks with which the head of a message in channels begins."""

_MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>", "<|start|>", _CHANNEL)
"""Marks with which a message in channels ends."""

_FENCE = "```"
_LONGEST_HEAD = 300
"""Most characters of a head; a longer one is text."""

_LONGEST_MARK = max(len(mark) for pair in (*MARKS, *_WORD_MARKS) for mark in pair)
_QUOTES = frozenset("`\"'\u201c\u2018\u00ab")
"""A mark after one of these is text."""

_FIRST_CHARACTERS = frozenset("<[\u25c1")
"""The first characters of marks."""

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
"""Lower case of ASCII letters alone, which keeps every character's index."""

_TURN_ENDS = (
    "<|end|>",
    "<|return|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<end_of_turn>",
)
"""Marks for the end of a turn, which some endpoints leave in the answer."""

_NEXT_IN_TEXT = re.compile("|".join(map(re.escape, ("\n", *_ALL_MARKS))))
_NEXT_IN_CHANNELS = re.compile("|".join(map(re.escape, ("\n", *_ALL_MARKS, *_MESSAGE_ENDS))))


def without_thoughts(text: str) -> str:
    """Return a whole text without its thoughts, surrounding white space, and marks for the end of a turn."""
    thoughts = ThoughtFilter()
    text_out = (thoughts.take(text) + thoughts.end()).strip()
    while (mark := next((mark for mark in _TURN_ENDS if text_out.endswith(mark)), "")) and text_out:
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
        self._held = ""  # text that was taken and not read yet
        self._low = ""  # ``_held`` in lower case
        self._at = 0  # the index in it from which to read
        self._is_end = False  # no further part comes
        self._closes: tuple[str, ...] = _CLOSING_MARKS if thinking else ()  # within a thought: the marks that close it
        self._front = True  # nothing of the answer was read yet
        self._skips_space = True  # white space is left out here
        self._line = True  # at the beginning of a line
        self._in_code = False  # within a code fence
        self._in_head = False  # within the head of a message in channels
        self._has_channels = False  # the model writes messages in channels
        self._open_marks = 0  # opening marks that count as text and are not closed yet
        self._last = ""  # the last character of the answer so far

    def take(self, part: str) -> str:
        """Return the text that can be sent after ``part``: without thoughts, or white space before the first word."""
        return self._read(part, is_end=False)

    def end(self) -> str:
        """Return the rest when no further part comes."""
        return self._read("", is_end=True)

    def _read(self, part: str, *, is_end: bool) -> str:
        self._held, self._at, self._is_end = self._held + part, 0, is_end
        self._low = self._held.translate(_LOWER)
        text_out: list[str] = []
        while self._at < len(self._held) and self._step(text_out):
            pass
        self._held = self._held[self._at :]
        return "".join(text_out)

    def _step(self, text_out: list[str]) -> bool:
        """Read on; return False if more text is needed first."""
        if self._closes:
            return self._leave_thought()
        if self._in_head:
            return self._leave_head()
        if self._skips_space and self._held[self._at].isspace():
            self._at += 1
            return True
        if self._line or self._skips_space:
            if self._enters():
                return True
            if not self._is_end and self._may_enter():
                return False
        return self._read_text(text_out)

    def _leave_thought(self) -> bool:
        found = [(index, close) for close in self._closes if (index := self._low.find(close, self._at)) >= 0]
        if not found:
            # A thought may be long. Only its last characters are kept, which may be the beginning of a closing mark.
            self._at = max(self._at, len(self._held) - max(map(len, self._closes)) + 1)
            return False
        index, close = min(found)
        self._at = index if close in _HEAD_STARTS else index + len(close)
        self._closes, self._in_head = (), close in _HEAD_STARTS
        self._skips_space = self._line = True
        return True

    def _leave_head(self) -> bool:
        """Read the head of a message in channels: all messages but the final one are thoughts."""
        end = self._low.find(_MESSAGE, self._at)
        if end < 0 and len(self._held) - self._at <= _LONGEST_HEAD:
            return False
        end = end if end >= 0 else len(self._held)
        head = self._low[self._at : end]
        self._at = min(len(self._held), end + len(_MESSAGE))
        self._in_head, self._has_channels = False, True
        self._skips_space = self._line = True
        if _CHANNEL in head and not head.rpartition(_CHANNEL)[2].strip().startswith("final"):
            self._closes = _MESSAGE_ENDS
        return True

    def _enters(self) -> bool:
        """Whether a thought, or the head of a message in channels, begins here; skips the opening mark."""
        low, at = self._low, self._at
        if low.startswith(_FENCE, at) or self._in_code:
            return False
        if self._front and low.startswith(_HEAD_STARTS, at):
            self._in_head = True
            return True
        for opening, close in (*MARKS, *(_WORD_MARKS if self._front else ())):
            if low.startswith(opening, at):
                interchangeable = opening in _INTERCHANGEABLE
                self._at = at + len(opening)
                self._closes = (
                    tuple(end for begin, end in MARKS if begin in _INTERCHANGEABLE) if interchangeable else (close,)
                )
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
        marks = [_FENCE] if self._in_code else [_FENCE, *(opening for opening, _ in MARKS)]
        if self._front:
            marks += [*_HEAD_STARTS, *(opening for opening, _ in _WORD_MARKS), _STRIPPED]
        return any(mark.startswith(rest) for mark in marks if mark != rest or mark == _STRIPPED)

    def _read_text(self, text_out: list[str]) -> bool:
        if self._line and self._low.startswith(_FENCE, self._at):
            self._in_code = not self._in_code
            self._emit(text_out, self._at + len(_FENCE))
        found = (_NEXT_IN_CHANNELS if self._has_channels else _NEXT_IN_TEXT).search(self._low, self._at)
        if found is None:
            self._emit(text_out, len(self._held) - (0 if self._is_end else self._unfinished()))
            return False
        self._emit(text_out, found.start())
        mark = found[0]
        if mark == "\n":
            self._emit(text_out, found.end())
            self._line = True
        elif self._in_code or self._last in _QUOTES:
            self._emit(text_out, found.end())
        elif mark in _MESSAGE_ENDS:
            self._at, self._in_head = (found.start(), True) if mark in _HEAD_STARTS else (found.end(), False)
            self._front = self._skips_space = self._line = True
        elif mark not in _CLOSING_MARKS or self._open_marks:
            self._open_marks += -1 if mark in _CLOSING_MARKS else 1
            self._emit(text_out, found.end())
        else:
            text_out.clear()
            self.restarts += 1
            self._at, self._last = found.end(), ""
            self._skips_space = self._line = True
        return True

    def _emit(self, text_out: list[str], end: int) -> None:
        if end > self._at:
            text_out.append(self._held[self._at : end])
            self._last = self._held[end - 1]
            self._front = self._skips_space = self._line = False
            self._at = end

    def _unfinished(self) -> int:
        """Return how many characters at the end may be the beginning of a mark."""
        marks = (*_ALL_MARKS, *_MESSAGE_ENDS) if self._has_channels else _ALL_MARKS
        for index in range(max(self._at, len(self._low) - _LONGEST_MARK + 1), len(self._low)):
            rest = self._low[index:]
            if rest[0] in _FIRST_CHARACTERS and any(mark.startswith(rest) for mark in marks):
                return len(rest)
        return 0
