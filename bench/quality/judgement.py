"""What a language model's judgement adds to detection, on a sample of labelled prompts.

Of each of four kinds (direct and indirect attacks, benign and hard benign texts) equally many rows are taken, chosen by
their texts' hashes. The language model is shown every row that reflex, the scorer (intuition's trained model) and the
trust evaluator (appraisal's) let pass as they ship, by the same request that appraisal makes. Its answer is read as
appraisal reads it, and stops the row if the breaker would trip. One run shows two gates: ``both`` asks about all of
these rows, ``llm`` only about rows whose falsehood (how untrustworthy a text looks, 0 to 1) is high enough to be
doubtful. With ``--record FILE`` every answer of the model is kept, and a run with the same file only asks for those
that it does not hold.

Run it with ``neuraxis bench detection --llm URL|local --corpus PROMPTS``.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from actors.appraisal.appraising import appraise
from actors.appraisal.session_memory import SessionMemory
from actors.appraisal.settings import AppraisalSettings, TrustSettings
from actors.appraisal.trust_gate import events_of_answer, events_of_input, waiting_on
from actors.breaker.machine import reading_of
from actors.breaker.settings import BreakerSettings
from actors.intuition.scorer import THRESHOLD, score
from actors.llm.open_effector import open_llm
from actors.llm.settings import LlmSettings
from actors.runtime.clock import SystemClock
from actors.runtime.effectors.spec import EffectorContext
from bench.quality.reflex_detection import blocking
from deploy.training.labelled_corpus import INDIRECT, Row, is_direct, load_rows
from schemas.actor import Message
from schemas.effectors.contract import Effector
from schemas.vocabulary.appraisal import AppraisalJudged, JudgementRequested
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import ANSWER_FILTERED, ANSWER_INVALID, LlmCompleted, LlmFailed

KINDS = ("direct attacks", "indirect injections", "benign", "hard benign")
"""The kinds of rows; hard benign texts are harmless, but in the words of attacks."""

BREAKER = BreakerSettings()
"""The breaker's settings, which have the least falsehood that stops an input."""


class RecordedAnswer(msgspec.Struct, frozen=True):
    """A model's answer to the request whose content hashes to ``key``, as the log would hold it."""

    key: str
    answer: LlmCompleted | LlmFailed
    took_ms: float


class Judged(msgspec.Struct, frozen=True):
    """The result for a row of a kind.

    Attributes:
        kind: One of ``KINDS``.
        local: Whether the local guards (reflex, the scorer, the trust evaluator) stop it.
        open: Whether the gate ``llm`` would ask about it: its falsehood leaves it in doubt.
        reason: Why the model's answer could not be used; empty if it could.
        stopped: Whether the breaker trips by the model's judgement.
        tokens: Tokens of the question and the answer.
        took_ms: How long the answer took; 0 if the model was not asked.
    """

    kind: str
    local: bool
    open: bool = False
    reason: str = ""
    stopped: bool = False
    tokens: int = 0
    took_ms: float = 0.0


class Tally(msgspec.Struct, frozen=True):
    """A line of the result: the counts of the rows of a kind.

    Attributes:
        kind: One of ``KINDS``.
        rows: All rows of the kind.
        local: Those that the local guards stop.
        asked: Those that the model was asked about.
        unusable: Those of which its answer could not be used.
        both: Those that it stops, asked under the gate ``both``.
        open: Those that the gate ``llm`` would ask about.
        llm: Those of them that it stops.
    """

    kind: str
    rows: int
    local: int
    asked: int
    unusable: int
    both: int
    open: int
    llm: int


def sample(rows: Sequence[Row], count: int) -> list[tuple[str, Row]]:
    """Return rows with their kinds: equally many of each kind, those whose texts have the lowest hashes."""
    found: list[tuple[str, Row]] = []
    for kind in KINDS:
        of_kind = sorted((row for row in rows if kind_of(row) == kind), key=lambda row: _hash(row.text))
        found += [(kind, row) for row in of_kind[: count // len(KINDS)]]
    return found


def kind_of(row: Row) -> str:
    """Return the kind that a row belongs to; empty for none."""
    if row.attack:
        return KINDS[0] if is_direct(row.category) else KINDS[1] if row.category in INDIRECT else ""
    return {"benign": KINDS[2], "hard_benign": KINDS[3]}[row.label]


async def judge(
    rows: Sequence[tuple[str, Row]], effector: Effector, record: Path | None, trust: TrustSettings
) -> list[Judged]:
    """Judge rows by the local guards, and those that they let pass by the model."""
    kept = _read(record)
    blocks = blocking()
    found = []
    for number, (kind, row) in enumerate(rows):
        received = InputReceived(text=row.text)
        local = appraise(SessionMemory(), received, AppraisalSettings())
        reading = reading_of(local.layers, BREAKER)
        if blocks(row.text) or score(row.text) >= THRESHOLD or reading is None or reading.violation:
            found.append(Judged(kind, True))
            continue
        asked = events_of_input(local, [(local.layers[0], row.text)], trust, None, 0)[0]
        if not isinstance(asked, JudgementRequested):
            found.append(Judged(kind, False))
            continue
        key = _hash(msgspec.json.encode((asked.call.messages, asked.call.answer_schema)).decode())
        if key not in kept:
            began = time.perf_counter()
            message = Message(asked, number + 1, key, time.time_ns(), "bench", "bench", key)
            [answer] = await effector.handle(message)
            assert isinstance(answer, LlmCompleted | LlmFailed)
            kept[key] = RecordedAnswer(key, answer, round((time.perf_counter() - began) * 1000, 1))
            if _is_of_model(answer):
                _keep(record, kept[key])
        found.append(_judged(kind, asked, kept[key], local.layers[0].falsehood >= TrustSettings().open_from))
    return found


def _judged(kind: str, asked: JudgementRequested, kept: RecordedAnswer, is_open: bool) -> Judged:
    outcome = events_of_answer(waiting_on(kept.key, asked), kept.answer)[0]
    assert isinstance(outcome, AppraisalJudged)
    reading = reading_of(outcome.layers, BREAKER)
    stopped = reading is not None and reading.violation is not None
    completed = kept.answer if isinstance(kept.answer, LlmCompleted) else None
    tokens = completed.prompt_tokens + completed.completion_tokens if completed is not None else 0
    return Judged(kind, False, is_open, outcome.reason, stopped, tokens, kept.took_ms)


def tallies(judged: Sequence[Judged]) -> list[Tally]:
    """Return a line for each kind."""
    lines = []
    for kind in KINDS:
        rows = [each for each in judged if each.kind == kind]
        asked = [each for each in rows if each.took_ms]
        lines.append(
            Tally(
                kind=kind,
                rows=len(rows),
                local=sum(each.local for each in rows),
                asked=len(asked),
                unusable=sum(bool(each.reason) for each in asked),
                both=sum(each.stopped for each in asked),
                open=sum(each.open for each in asked),
                llm=sum(each.stopped and each.open for each in asked),
            )
        )
    return lines


def show(judged: Sequence[Judged], gate: str) -> None:
    """Print the result as a table, with what it cost; a run under the gate ``both`` shows ``llm`` as well."""
    heads = f"{'':20} {'rows':>5} {'local':>7} | {f'{gate} asks':>9} {'unusable':>8} {'adds':>7}"
    print(f"{heads} | {'llm asks':>8} {'adds':>7}" if gate == "both" else heads)
    for line in tallies(judged):
        share = [f"{100 * number / max(1, line.rows):6.1f}%" for number in (line.local, line.both, line.llm)]
        line_text = f"{line.kind:20} {line.rows:5} {share[0]} | {line.asked:9} {line.unusable:8} {share[1]}"
        print(f"{line_text} | {line.open:8} {share[2]}" if gate == "both" else line_text)
    asked = sorted(each.took_ms for each in judged if each.took_ms)
    if asked:
        tokens = sum(each.tokens for each in judged) / len(asked)
        print(
            f"{len(asked)} calls, {tokens:,.0f} tokens each; p50 {asked[len(asked) // 2]:,.0f} ms, "
            f"p99 {asked[int(0.99 * (len(asked) - 1))]:,.0f} ms"
        )


async def run(corpus: Path, llm: str, rows: int, record: Path | None, trust: TrustSettings, model: str) -> list[Judged]:
    """Judge a sample of a corpus by a model; ``llm`` is its address, or ``local``."""
    chosen = sample(load_rows(corpus), rows)
    settings = LlmSettings(backend="local") if llm == "local" else LlmSettings(backend="openai", base_url=llm)
    if model:
        settings = msgspec.structs.replace(settings, models=msgspec.structs.replace(settings.models, appraise=model))

    async def nobody(inbox: str, body: bytes) -> None:
        """Drop pieces of an answer, since nobody reads them."""

    context = EffectorContext(None, nobody, os.environ, SystemClock())  # type: ignore[arg-type]  # no broker is there
    async with open_llm(settings, context) as effector:
        return await judge(chosen, effector, record, trust)


def _read(record: Path | None) -> dict[str, RecordedAnswer]:
    if record is None or not record.exists():
        return {}
    lines = record.read_bytes().splitlines()
    found = (msgspec.json.decode(line, type=RecordedAnswer) for line in lines if line.strip())
    return {kept.key: kept for kept in found if _is_of_model(kept.answer)}


def _is_of_model(answer: LlmCompleted | LlmFailed) -> bool:
    """Whether the model said something: what an endpoint that is away answers is asked again in the next run."""
    return isinstance(answer, LlmCompleted) or answer.reason in (ANSWER_INVALID, ANSWER_FILTERED)


def check_measured(judged: Sequence[Judged]) -> None:
    """Raise SystemExit if no answer of the model could be used: it adds nothing then, and nothing is measured."""
    asked = [each for each in judged if each.took_ms]
    if not judged or (asked and all(each.reason for each in asked)):
        why = ", ".join(sorted({each.reason for each in asked})) or "no row is of a kind that is judged"
        raise SystemExit(f"nothing was measured: none of {len(asked)} answers could be used ({why})")


def _keep(record: Path | None, kept: RecordedAnswer) -> None:
    if record is not None:
        with record.open("ab") as file:
            file.write(msgspec.json.encode(kept) + b"\n")


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def main() -> None:
    """Judge the corpus named on the command line by the model named there, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.judgement", description=__doc__)
    parser.add_argument("corpus", type=Path, help="labelled prompts, JSON Lines")
    parser.add_argument("--llm", required=True, metavar="URL|local", help="an endpoint that speaks OpenAI's protocol")
    parser.add_argument("--model", default="", help="its name there (default: llm.models.appraise)")
    parser.add_argument("--rows", type=int, default=500, help="rows to judge, a quarter for each kind")
    parser.add_argument("--record", type=Path, help="file that answers are kept in, and taken from")
    parser.add_argument("--gate", choices=("llm", "both"), default="both", help="rows to ask about: open ones, or all")
    parser.add_argument("--characters", type=int, default=TrustSettings().characters, help="of a row shown at most")
    given = parser.parse_args()
    trust = TrustSettings(gate=given.gate, characters=given.characters, timeout_ms=120_000)
    judged = asyncio.run(run(given.corpus, given.llm, given.rows, given.record, trust, given.model))
    show(judged, given.gate)
    check_measured(judged)


if __name__ == "__main__":
    main()
