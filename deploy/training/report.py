"""The share of attacks that the guards catch, in sources not used in training: by aim and by source, weakest first."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from actors.reflex import ACTOR as REFLEX
from deploy.training.judge_fitting import Prepared, Recipe, threshold_of
from deploy.training.labelled_corpus import APART, INDIRECT, Row, family_of, is_direct
from deploy.training.ngrams import Flags, Numbers
from schemas.actor import Message
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked

BEGIN, END = "<!-- detection: begin -->", "<!-- detection: end -->"
"""Marks of the part of a Markdown file that a report replaces."""

_AIMS = ("direct attacks", "indirect injections", "false alarms, benign", "false alarms, hard benign")
_LEAST_ROWS = 15


class Share(msgspec.Struct, frozen=True):
    """Of ``rows`` rows of an aim, a source or both, the share stopped by each guard and by any."""

    aim: str
    source: str
    rows: int
    shares: dict[str, float]


class Tally(msgspec.Struct, frozen=True):
    """Shares by aim, and by aim and source."""

    aims: tuple[Share, ...]
    sources: tuple[Share, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each aim."""
        for share in self.aims:
            line = ", ".join(f"{guard} {100 * part:.1f}%" for guard, part in share.shares.items())
            yield f"{share.aim}: {share.rows} rows; {line}"


def fired_by_fold(prepared: Prepared, scores: Numbers, recipe: Recipe) -> Flags:
    """Return which rows a judge stops, held out: a fold's threshold is fixed on the scores of the other folds."""
    folds = np.array(prepared.folds)
    fired = np.zeros(len(scores), dtype=np.bool_)
    for fold in sorted(set(prepared.folds)):
        others = np.nonzero(folds != fold)[0]
        threshold = threshold_of([prepared.corpus[place] for place in others.tolist()], scores[others], recipe)
        fired[folds == fold] = scores[folds == fold] > threshold
    return fired


def tally_caught(rows: Sequence[Row], judged: dict[str, Flags]) -> Tally:
    """Return the shares that reflex (as it ships), the judges and all together stop."""
    fired = {"reflex": np.array([_blocks(row.text) for row in rows]), **judged}
    fired["together"] = np.logical_or.reduce(list(fired.values()))
    aims = [_aim(row) for row in rows]
    families = [family_of(row.source) for row in rows]
    found = []
    for aim in _AIMS:
        of_aim = np.array([each == aim for each in aims])
        shares = [_share(aim, "all", of_aim, fired)]
        for family in sorted({family for family, each in zip(families, aims, strict=True) if each == aim}):
            members = of_aim & np.array([each == family for each in families])
            if members.sum() >= _LEAST_ROWS:
                shares.append(_share(aim, family, members, fired))
        found.append(shares)
    weak = [sorted(shares[1:], key=_weakness) for shares in found]
    return Tally(tuple(shares[0] for shares in found), tuple(share for shares in weak for share in shares))


def write_report(found: Tally, path: Path) -> None:
    """Write a report into a Markdown file, in place of the one it has between the marks."""
    before, after = around_report(path)
    table = "\n".join((BEGIN, *_markdown(found), END))
    path.write_text(f"{before}{table}{after}")


def around_report(path: Path) -> tuple[str, str]:
    """Return what a Markdown file has before and after the report's marks.

    Raises:
        ValueError: it has no marks, or its folder is not there.
    """
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}: make it")
    text = path.read_text() if path.exists() else f"{BEGIN}{END}\n"
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise ValueError(
            f"{path.name}: no lines {BEGIN} and {END} to put the report between: add them, or name a new file"
        )
    return before, after


def _markdown(found: Tally) -> Iterator[str]:
    guards = list(found.aims[0].shares)
    yield ""
    yield f"| what | source | rows | {' | '.join(guards)} |"
    yield "| --- | --- | --- |" + " --- |" * len(guards)
    for share in (*found.aims, *found.sources):
        shares = " | ".join(f"{100 * part:.1f}%" for part in share.shares.values())
        yield f"| {share.aim} | {share.source} | {share.rows} | {shares} |"
    yield ""


def _aim(row: Row) -> str:
    if row.category in APART:
        return ""
    if row.attack:
        return _AIMS[0] if is_direct(row.category) else _AIMS[1] if row.category in INDIRECT else ""
    return _AIMS[2] if row.label == "benign" else _AIMS[3]


def _weakness(share: Share) -> tuple[float, str]:
    together = share.shares["together"]
    return (together if share.aim in _AIMS[:2] else -together, share.source)


def _share(aim: str, source: str, members: Flags, fired: dict[str, Flags]) -> Share:
    count = int(members.sum())
    return Share(
        aim, source, count, {guard: float(hit[members].mean()) if count else 0.0 for guard, hit in fired.items()}
    )


def _blocks(text: str) -> bool:
    message = Message(InputReceived(text=text), 1, "", 0)
    return any(isinstance(event, ReflexBlocked) for event in REFLEX.decide(REFLEX.initial(), message))
