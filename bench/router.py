"""Router: what a decision costs, from a pending text to the event, beside the source's budget of 5 ms.

A decision is ``decide`` on ``arbiter.escalated`` with the text pending in a session of four turns: signals, scores,
margins and the event. Encoding and appending it are the runtime's. Run it with ``python -m bench.router``.
"""

from typing import Any

import msgspec

from actors.router import ACTOR
from actors.router.signals import INSPECTED_CHARACTERS, read_text
from bench.table import percentiles
from schemas.actor import Message
from schemas.event import Event
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

BUDGET_US = 5_000.0
SECONDS_PER_CASE = 1.0
_PARAGRAPH = (
    "I looked at the second version of the plan, and the part about the storage is not clear to me. The figures in the "
    "table add up to more than the disk can hold, the backup is listed twice, and nobody is named for the night shift. "
)
CASES = {
    "blank": " ",
    "greeting": "Hi",
    "thanks": "Thanks, that was really helpful!",
    "question": "What did we discuss about the lease of the office?",
    "request": "Hi, can you deploy this?",
    "report": "The build is broken after the last change to the parser, and I have to fix it before noon",
    "paragraph": _PARAGRAPH,
    "page": (_PARAGRAPH * 20)[:INSPECTED_CHARACTERS],
    "megabyte": _PARAGRAPH * (1_000_000 // len(_PARAGRAPH)),
}
"""Name -> text. From a page on, cost no longer grows with the text."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Times are microseconds; ``budget_ratio`` says how many 99th percentiles fit into the budget."""

    case: str
    characters: int
    mode: str
    signals_p50_us: float
    p50_us: float
    p99_us: float
    budget_ratio: float


def _message(event: Event, exchange: str, seq: int) -> Message:
    return Message(event=event, seq=seq, id=f"{seq:032x}", time_ns=seq * 1_000_000, session="s", exchange=exchange)


def _answer() -> ResponseEmitted:
    return ResponseEmitted(
        stage="DELIBERATIVE",
        action="EXECUTED",
        reason="RESPOND",
        mode="RESPOND",
        first_mode="RESPOND",
        response="",
        backend="composer",
    )


def _pending(text: str) -> tuple[Any, Message]:
    """Return the state of a session of four turns with ``text`` pending, and the message that decides it."""
    state = ACTOR.initial()
    for turn in range(4):
        state = ACTOR.evolve(state, _message(InputReceived(text="x"), f"e{turn}", 2 * turn + 1))
        state = ACTOR.evolve(state, _message(_answer(), f"e{turn}", 2 * turn + 2))
    state = ACTOR.evolve(state, _message(InputReceived(text=text), "now", 9))
    escalated = ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=5_000)
    return state, _message(escalated, "now", 10)


def _row(case: str, text: str) -> Row:
    state, passed = _pending(text)
    (selected,) = ACTOR.decide(state, passed)
    reading, _ = percentiles(lambda: read_text(text), SECONDS_PER_CASE)
    p50, p99 = percentiles(lambda: ACTOR.decide(state, passed), SECONDS_PER_CASE)
    return Row(
        case=case,
        characters=len(text),
        mode=str(getattr(selected, "selected_mode", "")),
        signals_p50_us=round(reading, 1),
        p50_us=round(p50, 1),
        p99_us=round(p99, 1),
        budget_ratio=round(BUDGET_US / p99, 1),
    )


def run() -> list[Row]:
    """Measure every case; about two seconds each at most."""
    return [_row(case, text) for case, text in CASES.items()]


def main() -> None:
    """Print the rows as a table."""
    print(f"{'case':10} {'chars':>8} {'mode':12} {'signals p50':>12} {'p50 us':>8} {'p99 us':>8} {'5 ms / p99':>11}")
    for row in run():
        print(
            f"{row.case:10} {row.characters:8} {row.mode:12} {row.signals_p50_us:12.1f} {row.p50_us:8.1f} "
            f"{row.p99_us:8.1f} {row.budget_ratio:11.1f}"
        )


if __name__ == "__main__":
    main()
