"""The latest routing decisions of an agent, and the misroutes among them. Pure.

A decision chooses how to answer; ACT looks things up in a loop first.
"""

from math import fsum, log

import msgspec

from schemas.vocabulary.router import Feedback, Mode, ModeSelected

MODES: tuple[Mode, ...] = ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE")
"""Every mode of answering, in the order of reports."""


class Decision(msgspec.Struct, frozen=True):
    """One decision, made at ``at_ns`` (Unix nanoseconds).

    ``ambiguous``: the scores of its best two modes were closer than the router's margin.
    """

    at_ns: int
    mode: Mode
    ambiguous: bool


class Misroute(msgspec.Struct, frozen=True):
    """A decision that a later input showed to be wrong."""

    at_ns: int
    kind: Feedback


class Window(msgspec.Struct, frozen=True):
    """The latest decisions, and the misroutes observed since the first of them, oldest first."""

    decisions: tuple[Decision, ...] = ()
    misroutes: tuple[Misroute, ...] = ()


def decision_of(selected: ModeSelected, at_ns: int) -> Decision | None:
    """Return a decision as it is counted; None for the choice after an ACT loop, which cannot be ACT.

    It counts under the mode that it led to: ACT if a loop ran, else the mode of the answer.
    """
    if selected.rerouted:
        return None
    return Decision(at_ns, selected.terminal_mode or "ACT", bool(selected.tiebreaker_candidates))


def with_decision(window: Window, decision: Decision, most: int, window_ns: int) -> Window:
    """Return the window with one more decision, and without those that have left it.

    It holds the latest ``most`` decisions, none older than ``window_ns``.
    """
    oldest_ns = decision.at_ns - window_ns
    decisions = (*window.decisions, decision)[-most:]
    if decisions[0].at_ns < oldest_ns:
        decisions = tuple(each for each in decisions if each.at_ns >= oldest_ns)
    misroutes = window.misroutes
    if misroutes and misroutes[0].at_ns < decisions[0].at_ns:
        misroutes = tuple(each for each in misroutes if each.at_ns >= decisions[0].at_ns)
    return Window(decisions, misroutes)


def with_misroute(window: Window, misroute: Misroute, most: int) -> Window:
    """Return the window with one more misroute, at most one for each decision."""
    return Window(window.decisions, (*window.misroutes, misroute)[-most:])


def shares(window: Window) -> dict[Mode, float]:
    """Return each mode's share of the decisions, to 6 decimals; there must be decisions."""
    modes = [decision.mode for decision in window.decisions]
    return {mode: round(modes.count(mode) / len(modes), 6) for mode in MODES}


def ambiguous_share(window: Window) -> float:
    """Return the share of ambiguous decisions; there must be decisions."""
    return round(sum(decision.ambiguous for decision in window.decisions) / len(window.decisions), 6)


def misroute_share(window: Window, kind: Feedback | None = None) -> float:
    """Return the misroutes, of one kind or of all, as a share of the decisions, at most 1."""
    count = sum(kind is None or misroute.kind == kind for misroute in window.misroutes)
    return round(min(count / len(window.decisions), 1.0), 6)


def entropy(shares_of_modes: dict[Mode, float]) -> float:
    """Return how evenly the modes are spread (Shannon, normalised): 0 for one mode alone, 1 for all alike."""
    spread = -fsum(share * log(share) for share in shares_of_modes.values() if share)
    return round(min(max(spread / log(len(MODES)), 0.0), 1.0), 6)
