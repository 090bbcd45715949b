"""Loop families: a loop and its reruns, by their names, and what is remembered of them. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

DECIMALS = 6
"""Scores and fatigue are compared after rounding: 0.85 - 0.80 must count as 0.05."""

_RERUN = re.compile(r"(.+)_r([0-9]+)", re.DOTALL)
_DEEPEST = 1_000_000


class Loop(msgspec.Struct, frozen=True):
    """A judged loop: ``decided`` is the id of the event that judged it; a score is None where there was none.

    Of one that ended its family for limits that can be lifted, ``ended`` is what the family had come to before it.
    """

    id: str
    decided: str
    alignment: float | None
    drift: float | None
    ended: "Before | None" = None


Limit = Literal["max_reruns", "fatigue"]
"""A limit that a person may lift."""


class Before(msgspec.Struct, frozen=True):
    """The reruns and the fatigue of a family before a loop that ended it, and the limits that did, none lifted then."""

    reruns: int
    fatigue: float
    limits: tuple[Limit, ...]


class Lifted(msgspec.Struct, frozen=True):
    """A limit that somebody overrode, until ``until_ns``."""

    by: str
    until_ns: int


class Family(msgspec.Struct, frozen=True):
    """What is remembered of a loop and its reruns.

    Attributes:
        loops: Those judged, in the order of the log.
        best: The best-scored of all of them (:func:`best_of`), also where ``loops`` has forgotten it.
        reruns: The reruns there were, by orders and by names.
        fatigue: In [0, 1].
        fatigue_lifted: The override of fatigue, ``reruns_lifted`` that of the rerun limit.
        max_reruns: Its own limit of reruns; None: the settings'.
    """

    loops: tuple[Loop, ...] = ()
    best: Loop | None = None
    reruns: int = 0
    fatigue: float = 0.0
    fatigue_lifted: Lifted | None = None
    reruns_lifted: Lifted | None = None
    max_reruns: int | None = None

    def decided(self, loop_id: str) -> str:
        """Return the id of the event that judged a loop; empty where none is known."""
        return next((loop.decided for loop in self.loops if loop.id == loop_id), "")


def parted(loop_id: str) -> tuple[str, int]:
    """Return the family of a loop and its depth: ``x_r2`` is 2 deep in ``x``; exactly one such ending is stripped."""
    found = _RERUN.fullmatch(loop_id)
    if found is None:
        return loop_id, 0
    digits = found[2].lstrip("0")
    return found[1], min(int(digits or "0"), _DEEPEST) if len(digits) < 10 else _DEEPEST


def named(family: str, depth: int) -> str:
    """Return the name of a family's loop at a depth; 0 is its first."""
    return f"{family}_r{depth}" if depth else family


def best_of(loops: Iterable[Loop]) -> Loop:
    """Return the loop with the highest alignment minus drift, the earlier of equals; those without scores come last.

    Raises:
        ValueError: there is none.
    """
    return max(loops, key=_worth)


def judged(family: Family, loop: Loop, reruns: int, fatigue: float, most: int) -> Family:
    """Return a family after one more loop was judged; of its loops the latest ``most`` are kept."""
    best = loop if family.best is None else best_of((family.best, loop))
    return msgspec.structs.replace(
        family, loops=latest((*family.loops, loop), most), best=best, reruns=reruns, fatigue=fatigue
    )


def reopened(family: Family, loop_id: str, now_ns: int) -> Family | None:
    """Return a family as it was before a limit ended it with this loop, where somebody has lifted that limit since.

    None where this loop is not the family's last, no limit ended it, or none of those that did is lifted. What was
    lifted at the time did not end it, so an override in force of one that did was given since.
    """
    if not family.loops:
        return None
    *others, last = family.loops
    if last.id != loop_id or last.ended is None:
        return None
    if not any(in_force(lifted_of(family, limit), now_ns) for limit in last.ended.limits):
        return None
    best = family.best
    if best is not None and best.id == loop_id:
        best = best_of(others) if others else None
    return msgspec.structs.replace(
        family, loops=tuple(others), best=best, reruns=last.ended.reruns, fatigue=last.ended.fatigue
    )


def lifted_of(family: Family, limit: Limit) -> Lifted | None:
    """Return the override of a limit, in force or not."""
    return family.reruns_lifted if limit == "max_reruns" else family.fatigue_lifted


def until_ns(lifted: Lifted | None, now_ns: int) -> int:
    """Return until when an override in force holds; 0 where none is."""
    return lifted.until_ns if in_force(lifted, now_ns) is not None and lifted is not None else 0


def in_force(lifted: Lifted | None, now_ns: int) -> Lifted | None:
    """Return an override that still holds."""
    return lifted if lifted is not None and now_ns < lifted.until_ns else None


def latest(loops: Sequence[Loop], most: int) -> tuple[Loop, ...]:
    """Return the last ``most`` loops."""
    return tuple(loops[-most:])


def _worth(loop: Loop) -> tuple[bool, float]:
    if loop.alignment is None or loop.drift is None:
        return False, 0.0
    return True, round(loop.alignment - loop.drift, DECIMALS)
