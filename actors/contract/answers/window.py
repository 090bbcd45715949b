"""Reads an answer while it arrives: how much of it may be sent on, and what was found in it. Pure.

The last :data:`WINDOW` characters are held back: as many as the longest key that is found by its form, or password that
is looked for. Longer things are held from their beginning: an address that is still incomplete, or a word of symbols
that may be an encoding. A repeated system prompt is short at first. So once a tenth of a layer is in the answer,
nothing more is sent until the whole answer was read.

Each look reads the new text and some text before it again, never the whole answer. The amount of new text for a look
grows with the held tail. So the cost of a character depends neither on the length of the answer nor on the pieces in
which it arrives. This is not the verdict: reflex gives that on the whole text, and the last window is held back until
then.
"""

import re
from collections.abc import Collection

from actors.contract.answers.credentials import LONGEST_VALUE, Kept
from actors.contract.answers.leaks import Leaks, turned
from actors.contract.answers.links import Links
from actors.contract.answers.prompt import Prompt
from actors.contract.text.views import read_views
from schemas.vocabulary.reflex import AnswerFault

WINDOW = LONGEST_VALUE
"""Characters that are held back."""

CAUTION = 0.1
"""Once the answer holds this share of a system layer, no more of it is sent before its end."""

STREAMED: tuple[AnswerFault, ...] = ("prompt_leak", "carrying_link", "secret")
"""What is looked for while an answer arrives; signatures of attacks are looked for only in whole texts."""

LONGEST_HELD = 8_192
"""Most characters of an incomplete word or address that are held back in addition to the window."""

_STEP, _SHARE = 64, 8
"""A look is taken after so many new characters, or after this share of the tail if that is more."""

_BEFORE = 2 * WINDOW
"""Characters already read that are read again with new text: a password or a sequence may lie across."""

_MAY_BE_CODED = re.compile(
    r"[A-Za-z0-9+/_=-]{16}|(?:[0-9a-fA-F]{2}[\s:,]){8}|[01]{8}|%[0-9a-fA-F]{2}|\\[ux]|&#|(?:[.-]{1,6}[ /]+){8}"
)
_CODED = re.compile(r"[A-Za-z0-9_+/=-][A-Za-z0-9_+/=.-]{16,}$")
_OPEN = re.compile(
    r"(?:!\[[^\]\[\n]{0,500}(?:\]\s?|\]\[[^\]\n]{0,500}|\]\(\s*(?:<?(?:h(?:t(?:t(?:p(?:s(?::[^\s<>\"']*)?|:[^\s<>\"']*)?)?)?)?)?)?)"
    r"|<img\b[^>]*|^[ ]{0,3}\[[^\]\n]{1,500}(?:\]?|\]:\s*<?[^\s<>\"']*))$",
    re.IGNORECASE | re.MULTILINE,
)


class Window:
    """Reads one text of an answer as it comes.

    Args:
        prompt: What its model was asked.
        faults: The faults for which it is withheld.
        leak_share: Share of a system layer from which it counts as revealed.

    Attributes:
        taken: Characters so far.
        released: Characters from the beginning that may be sent on.
        found: Reasons to withhold the rest; once there are any, nothing more is released.
    """

    def __init__(self, prompt: Prompt, faults: Collection[AnswerFault] = STREAMED, leak_share: float = 0.6) -> None:
        self.taken = 0
        self.released = 0
        self.found: tuple[AnswerFault, ...] = ()
        self._faults = faults
        self._leak_share = leak_share
        self._leaks = Leaks(prompt)
        self._links = Links(prompt)
        self._kept = Kept(prompt)
        self._compared = bool(self._leaks or self._kept.values)
        self._tail = ""
        self._unread = 0
        # Instructions are found only in a whole text, so nothing is sent before the end.
        self._until_its_end = "orders" in faults

    def take(self, text: str) -> None:
        """Add the next piece."""
        self.taken += len(text)
        if self.found or not text:
            return
        self._tail += text
        self._unread += len(text)
        if self._unread >= max(_STEP, len(self._tail) // _SHARE):
            self._look()

    def end(self) -> None:
        """Note that the answer is complete."""
        self._look(at_its_end=True)
        self.released = self.released if self.found else self.taken

    def _look(self, *, at_its_end: bool = False) -> None:
        tail, self._unread = self._tail, 0
        coded_views = read_views(tail).found if _MAY_BE_CODED.search(tail) else ()
        views = (tail, *(view.text for view in coded_views), *(turned(tail) if self._compared else ()))
        still_written = None if at_its_end or len(tail) > LONGEST_HELD else _OPEN.search(tail)
        closed = len(tail) if still_written is None else still_written.start()
        for view in views:
            self._leaks.read(view)
        self._links.read(tail[:closed])
        faults: dict[AnswerFault, bool] = {
            "prompt_leak": self._leaks.share >= self._leak_share,
            "carrying_link": bool(self._links.hosts),
            "secret": "secret" in self._faults and any(map(self._kept.found_in, views)),
        }
        self.found = tuple(fault for fault, there in faults.items() if there and fault in self._faults)
        if self.found:
            return
        coded = None if len(tail) > LONGEST_HELD else _CODED.search(tail)
        held = min(closed, len(tail) - WINDOW, len(tail) if coded is None else coded.start())
        self._until_its_end = self._until_its_end or (
            "prompt_leak" in self._faults and self._leaks.share >= min(CAUTION, self._leak_share)
        )
        begins = self.taken - len(tail)
        if not self._until_its_end:
            self.released = max(self.released, begins + held)
        self._tail = tail[max(0, min(held, len(tail) - _BEFORE)) :]
