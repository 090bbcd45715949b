"""Counts of an agent's latest routing decisions, by slices of time. Pure.

Only the router's first decision of an exchange is counted, under the mode that it led to: ACT if a loop ran that looks
things up, else the mode of the answer. The decision after an ACT loop cannot be ACT, so counting it would distort the
shares.
"""

from math import fsum, log
from typing import Literal

import msgspec

from schemas.vocabulary.router import Mode, ModeSelected

MODES: tuple[Mode, ...] = ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE")
"""Every mode of answering, in the order of ``Counts.modes``; the router chooses one for each exchange."""

Misroute = Literal["missed_clarify", "missed_act", "under_engagement"]
"""A kind of misroute, that is, of a decision that feedback has shown to be wrong: asking back, or looking things up,
was missed, or a brief acknowledgement was too little."""

MISROUTES: tuple[Misroute, ...] = ("missed_clarify", "missed_act", "under_engagement")
"""Every kind of misroute, in the order of ``Counts.misroutes``; of equally frequent kinds the first one counts."""


class Counts(msgspec.Struct, frozen=True):
    """The counts of one slice of time, which begins at ``start_ns``.

    Decisions by mode, ambiguous decisions, misroutes by kind, and inputs that were social gestures (a greeting,
    thanks).
    """

    start_ns: int = 0
    modes: tuple[int, ...] = (0,) * len(MODES)
    ambiguous: int = 0
    misroutes: tuple[int, ...] = (0,) * len(MISROUTES)
    social: int = 0

    @property
    def decisions(self) -> int:
        """How many decisions were counted."""
        return sum(self.modes)

    def share(self, mode: Mode) -> float:
        """Return a mode's share of the decisions; 0 if there are none."""
        return self.modes[MODES.index(mode)] / max(self.decisions, 1)

    def ambiguous_share(self) -> float:
        """Return the share of decisions whose best two modes were too close for the router, by its margin."""
        return self.ambiguous / max(self.decisions, 1)

    def misroute_share(self, kind: Misroute | None = None) -> float:
        """Return the misroutes, of one kind or of all, as a share of the decisions, at most 1."""
        count = sum(self.misroutes) if kind is None else self.misroutes[MISROUTES.index(kind)]
        return min(count / max(self.decisions, 1), 1.0)

    def social_share(self) -> float:
        """Return the share of decisions on a greeting or thanks."""
        return self.social / max(self.decisions, 1)

    def entropy(self) -> float:
        """Return how evenly the modes are spread: 0 for one mode alone, 1 for all alike."""
        shares = [count / max(self.decisions, 1) for count in self.modes if count]
        # Adding zero turns -0.0, which would be written differently, into 0.0.
        return round(-fsum(share * log(share) for share in shares) / log(len(MODES)), 6) + 0.0

    def dominant(self) -> Mode:
        """Return the most frequent mode."""
        return MODES[self.modes.index(max(self.modes))]


Slices = tuple[Counts, ...]
"""The slices with any counts, oldest first."""


def mode_of(selected: ModeSelected) -> Mode | None:
    """Return the mode that a decision counts under; None for the choice after an ACT loop."""
    if selected.rerouted:
        return None
    return selected.terminal_mode or "ACT"


def is_social(selected: ModeSelected) -> bool:
    """Whether the input of a decision was a greeting, or thanks."""
    return selected.signals.greeting_pattern or selected.signals.explicit_feedback == "positive"


def with_decision(slices: Slices, mode: Mode, selected: ModeSelected, now_ns: int, width_ns: int) -> Slices:
    """Return the slices with one more decision, which counts under ``mode``."""
    earlier, latest = _split_latest(slices, now_ns, width_ns)
    counted = msgspec.structs.replace(
        latest,
        modes=_one_more(latest.modes, MODES.index(mode)),
        ambiguous=latest.ambiguous + bool(selected.tiebreaker_candidates),
        social=latest.social + is_social(selected),
    )
    return (*earlier, counted)


def with_misroute(slices: Slices, kind: Misroute, now_ns: int, width_ns: int) -> Slices:
    """Return the slices with one more misroute."""
    earlier, latest = _split_latest(slices, now_ns, width_ns)
    misroutes = _one_more(latest.misroutes, MISROUTES.index(kind))
    return (*earlier, msgspec.structs.replace(latest, misroutes=misroutes))


def within(slices: Slices, now_ns: int, window_ns: int, width_ns: int) -> Slices:
    """Return the slices that overlap the window that ends now."""
    return tuple(each for each in slices if each.start_ns + width_ns > now_ns - window_ns)


def total(slices: Slices) -> Counts:
    """Return the sum of slices."""
    if not slices:
        return Counts()
    return Counts(
        slices[0].start_ns,
        tuple(map(sum, zip(*(each.modes for each in slices), strict=True))),
        sum(each.ambiguous for each in slices),
        tuple(map(sum, zip(*(each.misroutes for each in slices), strict=True))),
        sum(each.social for each in slices),
    )


def _split_latest(slices: Slices, now_ns: int, width_ns: int) -> tuple[Slices, Counts]:
    """Return the earlier slices and the one that ``now_ns`` falls in, the latest of all."""
    start_ns = now_ns // width_ns * width_ns
    if slices and slices[-1].start_ns >= start_ns:
        return slices[:-1], slices[-1]
    return slices, Counts(start_ns)


def _one_more(counts: tuple[int, ...], index: int) -> tuple[int, ...]:
    return (*counts[:index], counts[index] + 1, *counts[index + 1 :])
