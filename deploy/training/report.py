"""Reporting the share of attacks that the guards stop in held-out sources: by kind and by source, the weakest first.

The guards are reflex, which matches known attacks, and two judges, learned models: intuition's scorer and appraisal's
trust evaluator.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from actors.reflex import ACTOR as REFLEX
from deploy.training.judge_fitting import Prepared, Recipe, threshold_of
from deploy.training.labelled_corpus import EXCLUDED_CATEGORIES, INDIRECT, Row, family_of, is_direct
from deploy.training.ngrams import Flags, Numbers
from events.files.whole_files import PUBLIC, replace_file
from schemas.actor import Message
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked

BEGIN, END = "<!-- detection: begin -->", "<!-- detection: end -->"
"""Marks around the part of a Markdown file that a report replaces."""

_KINDS = ("direct attacks", "indirect injections", "false alarms, benign", "false alarms, hard benign")
_DIRECT, _INDIRECT, _BENIGN, _HARD_BENIGN = _KINDS
_LEAST_ROWS = 15
"""Sources with fewer rows of a kind get no line of their own."""


class Share(msgspec.Struct, frozen=True):
    """The share that each guard stops, and that any stops, of ``rows`` rows of one kind, from one source or all."""

    kind: str
    source: str
    rows: int
    shares: dict[str, float]


class Tally(msgspec.Struct, frozen=True):
    """Shares by kind, and by kind and source."""

    kinds: tuple[Share, ...]
    sources: tuple[Share, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each kind."""
        for share in self.kinds:
            line = ", ".join(f"{guard} {100 * part:.1f}%" for guard, part in share.shares.items())
            yield f"{share.kind}: {share.rows} rows; {line}"


def fired_by_fold(prepared: Prepared, scores: Numbers, recipe: Recipe) -> Flags:
    """Return which held-out rows a judge stops, with a threshold that is chosen by the scores of the other folds."""
    folds = np.array(prepared.folds)
    fired = np.zeros(len(scores), dtype=np.bool_)
    for fold in sorted(set(prepared.folds)):
        others = np.nonzero(folds != fold)[0]
        threshold = threshold_of([prepared.corpus[index] for index in others.tolist()], scores[others], recipe)
        fired[folds == fold] = scores[folds == fold] > threshold
    return fired


def tally_caught(rows: Sequence[Row], fired_by_judge: dict[str, Flags]) -> Tally:
    """Return the shares that reflex with its default settings, each judge, and all together stop."""
    fired = {"reflex": np.array([_blocks(row.text) for row in rows]), **fired_by_judge}
    fired["together"] = np.logical_or.reduce(list(fired.values()))
    kinds = [_kind_of(row) for row in rows]
    families = [family_of(row.source) for row in rows]
    found = []
    for kind in _KINDS:
        of_kind = np.array([each == kind for each in kinds])
        shares = [_share(kind, "all", of_kind, fired)]
        for family in sorted({family for family, each in zip(families, kinds, strict=True) if each == kind}):
            members = of_kind & np.array([each == family for each in families])
            if members.sum() >= _LEAST_ROWS:
                shares.append(_share(kind, family, members, fired))
        found.append(shares)
    by_weakness = [sorted(shares[1:], key=_weakness) for shares in found]
    return Tally(tuple(shares[0] for shares in found), tuple(share for shares in by_weakness for share in shares))


def write_report(tally: Tally, path: Path) -> None:
    """Write a report into a Markdown file, in place of the one it has between the marks."""
    before, after = around_report(path)
    table = "\n".join((BEGIN, *_markdown(tally), END))
    mode = path.stat().st_mode & 0o777 if path.exists() else PUBLIC
    replace_file(path.resolve(), f"{before}{table}{after}".encode(), mode)


def around_report(path: Path) -> tuple[str, str]:
    """Return what a Markdown file has before and after the report's marks.

    Raises:
        ValueError: it has no marks, or its folder does not exist.
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


def _markdown(tally: Tally) -> Iterator[str]:
    guards = list(tally.kinds[0].shares)
    yield ""
    yield f"| what | source | rows | {' | '.join(guards)} |"
    yield "| --- | --- | --- |" + " --- |" * len(guards)
    for share in (*tally.kinds, *tally.sources):
        shares = " | ".join(f"{100 * part:.1f}%" for part in share.shares.values())
        yield f"| {share.kind} | {share.source} | {share.rows} | {shares} |"
    yield ""


def _kind_of(row: Row) -> str:
    if row.category in EXCLUDED_CATEGORIES:
        return ""
    if row.attack:
        return _DIRECT if is_direct(row.category) else _INDIRECT if row.category in INDIRECT else ""
    return _BENIGN if row.label == "benign" else _HARD_BENIGN


def _weakness(share: Share) -> tuple[float, str]:
    together = share.shares["together"]
    return (together if share.kind in (_DIRECT, _INDIRECT) else -together, share.source)


def _share(kind: str, source: str, members: Flags, fired: dict[str, Flags]) -> Share:
    count = int(members.sum())
    return Share(
        kind, source, count, {guard: float(hit[members].mean()) if count else 0.0 for guard, hit in fired.items()}
    )


def _blocks(text: str) -> bool:
    message = Message(InputReceived(text=text), 1, "", 0)
    return any(isinstance(event, ReflexBlocked) for event in REFLEX.decide(REFLEX.initial(), message))
