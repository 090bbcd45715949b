"""Reads an answer while it arrives: how much of it may be sent on, and what was found in it. Pure.

The last :data:`WINDOW` characters are held back: the length of the longest password that is looked for. What
may become longer is held back from where it begins: an incomplete URL, or a word that may be an encoding. A repeated
system prompt is short at first. So once a tenth of a layer is in the answer, nothing more is sent until the whole
answer was read.

Each check reads the new text and some text before it again, never the whole answer. The amount of new text for a check
grows with the held tail. So the cost of a character depends neither on the length of the answer nor on the pieces in
which it arrives. This is not the verdict: reflex gives that on the whole text, and the last window is held back until
then. A *fault* is a reason to withhold an answer. A system layer is an operator's instructions in the prompt.
"""

import re
import string
from collections.abc import Collection

from actors.contract.answers.credentials import LONGEST_VALUE, PromptSecrets
from actors.contract.answers.leaks import Leaks, reversed_and_rot13
from actors.contract.answers.pictures import Pictures, begun_picture
from actors.contract.answers.prompt import Prompt
from actors.contract.text.decoded_views import read_decoded_views
from schemas.vocabulary.reflex import AnswerFault

WINDOW = LONGEST_VALUE
"""Characters that are held back."""

CAUTION = 0.1
"""Once the answer holds this share of a system layer, no more of it is sent before its end."""

STREAMED: tuple[AnswerFault, ...] = ("prompt_leak", "carrying_link", "secret")
"""What is looked for while an answer arrives: much of the system prompt, a picture whose URL carries words of the
prompt to a host, and a key or password. Signatures of attacks are looked for only in whole texts."""

LONGEST_HELD = 8_192
"""Most characters of an incomplete word or URL that are held back in addition to the window."""

_STEP, _SHARE = 64, 8
"""A check is made after 64 new characters, or after an eighth of the held tail if that is more."""

_REREAD = 2 * WINDOW
"""Characters already read that are read again with new text: a password may begin before it and end in it."""

_MOST_READINGS = 16
"""Times that a pause may let the characters of a text be read; the checks of new text alone need some ten."""

# Sixteen characters of base64, eight pairs of hex digits, eight bits, an escape, or eight letters in Morse.
_MAY_BE_ENCODED = re.compile(
    r"[A-Za-z0-9+/_=-]{16}|(?:[0-9a-fA-F]{2}[\s:,]){8}|[01]{8}|%[0-9a-fA-F]{2}|\\[ux]|&#|(?:[.-]{1,6}[ /]+){8}"
)
_ENCODED_AT_END = re.compile(r"[A-Za-z0-9_+/=-][A-Za-z0-9_+/=.-]{16,}$")
# An incomplete reference in Markdown at the end of the text.
_INCOMPLETE_AT_END = re.compile(
    r"^[ \t>*+.\d-]{0,12}\[[^\]\n]{1,500}(?:\]?|\]:[\s>]*(?:<[^<>\n]*|[^\s<>\"']*))\Z", re.MULTILINE
)


_KEY_CHARACTERS = string.ascii_letters + string.digits + "_+/=.-"
_SHORTEST_KEY_START = 8
"""Fewest characters at the end of a text, letters and digits, that may be the beginning of a key."""


class AnswerWindow:
    """Reads one text of an answer as it comes.

    Args:
        prompt: What its model was asked.
        faults: The faults for which the answer is withheld.
        leak_share: A system layer counts as revealed if at least this share of it is in the answer.
        beside: The window of another text of the same answer, which has read the same prompt already. An answer may
            have hundreds of texts, and a prompt hundreds of thousands of characters.

    Attributes:
        received: Number of characters received so far.
        released: How many of them, from the beginning, may be sent on.
        found: Reasons to withhold the rest; once there are any, nothing more is released.
    """

    def __init__(
        self,
        prompt: Prompt,
        faults: Collection[AnswerFault] = STREAMED,
        leak_share: float = 0.6,
        beside: "AnswerWindow | None" = None,
    ) -> None:
        self.received = 0
        self.released = 0
        self.found: tuple[AnswerFault, ...] = ()
        self._faults = faults
        self._leak_share = leak_share
        self._leaks: Leaks = Leaks(prompt) if beside is None else beside._leaks.for_another_text()
        self._pictures: Pictures = Pictures(prompt) if beside is None else beside._pictures.for_another_text()
        self._secrets: PromptSecrets = PromptSecrets(prompt) if beside is None else beside._secrets
        self._compares_layers = bool(self._leaks or self._secrets.values)
        # The text that is not sent or must be read again; how many of its characters no check has read; and how many
        # characters had been received at the last pause.
        self._tail = ""
        self._unread = 0
        self._paused_at = 0
        self._read = 0  # characters read in all checks
        # Instructions to a model are found only in a whole text, so nothing is sent before the end.
        self._held_until_end = "orders" in faults

    def take(self, text: str) -> None:
        """Add the next piece."""
        self.received += len(text)
        if self.found or not text:
            return
        self._tail += text
        self._unread += len(text)
        if self._unread >= max(_STEP, len(self._tail) // _SHARE):
            self._check()

    def pause(self) -> None:
        """Note that other texts follow this one, which may be complete.

        What is held may be sent, unless a key, an encoding or a URL may have begun in it. If the text goes on, it
        is read together with what was held. What is long stays held where pauses had it read too often already.
        """
        if self.found or self._paused_at == self.received:
            return
        length = len(self._tail)
        if length > 2 * _REREAD and self._read + length > _MOST_READINGS * self.received:
            return
        self._paused_at = self.received
        self._check()
        if not (self.found or self._held_until_end or _may_go_on(self._tail)):
            self.released = self.received

    def end(self) -> None:
        """Note that the answer is complete."""
        self._check(complete_answer=True)
        self.released = self.released if self.found else self.received

    def _check(self, *, complete_answer: bool = False) -> None:
        tail, self._unread = self._tail, 0
        self._read += len(tail)
        decoded_views = read_decoded_views(tail).found if _MAY_BE_ENCODED.search(tail) else ()
        views = (
            tail,
            *(view.text for view in decoded_views),
            *(reversed_and_rot13(tail) if self._compares_layers else ()),
        )
        complete = len(tail) if complete_answer or len(tail) > LONGEST_HELD else _incomplete_from(tail)
        for view in views:
            self._leaks.read(view)
        self._pictures.read(tail[:complete])
        faults: dict[AnswerFault, bool] = {
            "prompt_leak": self._leaks.share >= self._leak_share,
            "carrying_link": bool(self._pictures.hosts),
            "secret": "secret" in self._faults and any(map(self._secrets.found_in, views)),
        }
        self.found = tuple(fault for fault, there in faults.items() if there and fault in self._faults)
        if self.found:
            return
        encoded = None if len(tail) > LONGEST_HELD else _ENCODED_AT_END.search(tail)
        safe_length = min(complete, len(tail) - WINDOW, len(tail) if encoded is None else encoded.start())
        self._held_until_end = self._held_until_end or (
            "prompt_leak" in self._faults and self._leaks.share >= min(CAUTION, self._leak_share)
        )
        tail_start = self.received - len(tail)
        if not self._held_until_end:
            self.released = max(self.released, tail_start + safe_length)
        self._tail = tail[max(0, min(safe_length, len(tail) - _REREAD)) :]


def _may_go_on(tail: str) -> bool:
    """Whether a text may end within a key, an encoding or a URL."""
    last = tail[len(tail.rstrip(_KEY_CHARACTERS)) :]
    is_key = len(last) >= _SHORTEST_KEY_START and any(map(str.isdigit, last)) and any(map(str.isalpha, last))
    return is_key or _incomplete_from(tail) < len(tail)


def _incomplete_from(tail: str) -> int:
    """Return where a picture or a reference begins that goes on behind the end of a text; its length for none."""
    found = _INCOMPLETE_AT_END.search(tail)
    return min(begun_picture(tail), len(tail) if found is None else found.start())
