"""Loop families: a loop and its reruns, found by name, and what is kept of them. Pure.

A loop is one pass of a deliberation, such as a model's answer. Its alignment is how well the answer fits its question,
its drift how far it strays from it, both from 0 to 1. Fatigue grows with reruns that improve neither. A limit of reruns
or of fatigue ends a family; an *override*, a person's order, lifts one for a time.
"""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

DECIMALS = 6
"""Scores and fatigue are compared after rounding: 0.85 - 0.80 must count as 0.05."""

_RERUN = re.compile(r"(.+)_r([0-9]+)", re.DOTALL)
"""The name of a rerun: the family's name, and the rerun's number."""

_GREATEST_NUMBER = 1_000_000
"""A greater number of a rerun, which a caller may write, counts as this one."""


class Loop(msgspec.Struct, frozen=True):
    """A judged loop: ``decided`` is the id of the event that judged it; a score is None if there was none.

    If the loop ended its family because of limits that can be lifted, ``ended`` is the family's state before it.
    """

    id: str
    decided: str
    alignment: float | None
    drift: float | None
    ended: "FamilyBefore | None" = None


Limit = Literal["max_reruns", "fatigue"]
"""A limit that a person may lift."""


class FamilyBefore(msgspec.Struct, frozen=True):
    """Reruns and fatigue of a family before the loop that ended it, and the limits that ended it (none was lifted)."""

    reruns: int
    fatigue: float
    limits: tuple[Limit, ...]


class LiftedLimit(msgspec.Struct, frozen=True):
    """A limit that is lifted until ``until_ns``, and who lifted it."""

    by: str
    until_ns: int


class Family(msgspec.Struct, frozen=True):
    """What is remembered of a loop and its reruns.

    Attributes:
        loops: Its judged loops, in the order of the log; the latest ones only.
        best: The best-scored of all its loops (:func:`best_of`), also if it is no longer among ``loops``.
        reruns: The number of reruns so far: of those ordered, or of those that loop names show, whichever is greater.
        fatigue: In [0, 1].
        fatigue_lifted: The override that lifts the limit of fatigue, if there is one.
        reruns_lifted: The override that lifts the limit of reruns, if there is one.
        max_reruns: Its own limit of reruns; None: the limit in the settings.
    """

    loops: tuple[Loop, ...] = ()
    best: Loop | None = None
    reruns: int = 0
    fatigue: float = 0.0
    fatigue_lifted: LiftedLimit | None = None
    reruns_lifted: LiftedLimit | None = None
    max_reruns: int | None = None

    def decided(self, loop_id: str) -> str:
        """Return the id of the event that judged a loop; empty where none is known."""
        return next((loop.decided for loop in self.loops if loop.id == loop_id), "")


def split_loop_id(loop_id: str) -> tuple[str, int]:
    """Return a loop's family and its number as a rerun: ``x_r2`` is ("x", 2). Exactly one such ending is removed."""
    found = _RERUN.fullmatch(loop_id)
    if found is None:
        return loop_id, 0
    digits = found[2].lstrip("0")
    return found[1], min(int(digits or "0"), _GREATEST_NUMBER) if len(digits) < 10 else _GREATEST_NUMBER


def loop_name(family: str, depth: int) -> str:
    """Return the name of a family's loop by its number as a rerun; 0 is the first loop."""
    return f"{family}_r{depth}" if depth else family


def best_of(loops: Iterable[Loop]) -> Loop:
    """Return the loop with the highest alignment minus drift: of equals the earlier; loops without scores come last.

    Raises:
        ValueError: there is none.
    """
    return max(loops, key=_rank)


def with_judgement(family: Family, loop: Loop, reruns: int, fatigue: float, most: int) -> Family:
    """Return a family after one more loop was judged; of its loops the latest ``most`` are kept."""
    best = loop if family.best is None else best_of((family.best, loop))
    loops = (*family.loops, loop)[-most:]
    return msgspec.structs.replace(family, loops=loops, best=best, reruns=reruns, fatigue=fatigue)


def reopened_family(family: Family, loop_id: str, now_ns: int) -> Family | None:
    """Return a family's state before a limit ended it with this loop, if that limit has been lifted since.

    None if this loop is not the family's last, if no limit ended it, or if none of the limits that ended it is lifted.
    A limit that was lifted at that time could not end the family. So an override that is in force for it is newer.
    """
    if not family.loops:
        return None
    *others, last = family.loops
    if last.id != loop_id or last.ended is None:
        return None
    if not any(in_force(override_of(family, limit), now_ns) for limit in last.ended.limits):
        return None
    best = family.best
    if best is not None and best.id == loop_id:
        best = best_of(others) if others else None
    return msgspec.structs.replace(
        family, loops=tuple(others), best=best, reruns=last.ended.reruns, fatigue=last.ended.fatigue
    )


def override_of(family: Family, limit: Limit) -> LiftedLimit | None:
    """Return the override of a limit, whether it is still in force or not."""
    return family.reruns_lifted if limit == "max_reruns" else family.fatigue_lifted


def until_ns(lifted: LiftedLimit | None, now_ns: int) -> int:
    """Return when an override that is in force ends; 0 if none is."""
    active = in_force(lifted, now_ns)
    return active.until_ns if active is not None else 0


def in_force(lifted: LiftedLimit | None, now_ns: int) -> LiftedLimit | None:
    """Return the override if it is in force, else None."""
    return lifted if lifted is not None and now_ns < lifted.until_ns else None


def _rank(loop: Loop) -> tuple[bool, float]:
    if loop.alignment is None or loop.drift is None:
        return False, 0.0
    return True, round(loop.alignment - loop.drift, DECIMALS)
