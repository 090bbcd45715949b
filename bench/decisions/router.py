"""Router: the cost of a decision, from a pending text to the event, compared with a budget of 5 ms.

A decision is ``decide`` on ``memory.recalled`` with the text pending in a session of four turns, about which a little
is remembered: signals, scores, margins and the event. Feedback is ``decide`` on ``input.received`` of the same text,
after an answer that it is compared with. Encoding and appending are not measured.

Run it with ``python -m bench.decisions.router``.
"""

from typing import Any

import msgspec

from actors.router import ACTOR
from actors.router.signals import INSPECTED_CHARACTERS, read_text
from bench.harness.table import percentiles, record
from schemas.actor import Message
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import COLD, MemoryRecalled
from schemas.vocabulary.responder import ResponseEmitted

BUDGET_US = 5_000.0
"""Microseconds that a decision should take at most."""

SECONDS_PER_CASE = 1.0
PARAGRAPH = (
    "I looked at the second version of the plan, and the part about the storage is not clear to me. The figures in the "
    "table add up to more than the disk can hold, the backup is listed twice, and nobody is named for the night shift. "
)
"""Two sentences of plain prose."""

_PAGE = (
    "Last winter the town decided to move the library out of the old customs house, and I was asked to write down "
    "how it went. The building had stood on the quay for more than a century. Its cellars flooded every spring, the "
    "reading room was too small for the school classes, and the wiring, which nobody had touched since the war, made "
    "the insurers nervous. There were three proposals: a new wing on the present site, a floor in the shopping "
    "arcade, or the empty foundry beside the station. Each had its friends. The council heard an architect, two "
    "engineers and a good many readers, some of whom brought petitions; our own staff said little in public, but "
    "they had measured the shelves. What decided it was money, as so often. The wing would have cost twice the "
    "grant, and the arcade wanted a rent that rose every year. So the foundry it was. You enter it today through a "
    "gate wide enough for a locomotive; the cranes are still up there, painted green, and below them run nine rows "
    "of oak cases that a joiner from the next valley built to our drawings. We moved eighty thousand volumes in "
    "eleven days. Volunteers passed the boxes along a chain, pupils drew up the labels, and a retired postman kept "
    "the order so strictly that only four books went astray. One of them turned up in the bakery. The heating took "
    "longer. During the first cold week the old stoves could not lift the hall above twelve degrees, so people read "
    "in coats, and the children's corner met in the boiler room, which they liked much better. Since February a heat "
    "pump does the work, and the bill has fallen by a third. The number of loans has doubled, though nobody can say "
    "how much of that is curiosity. Students come in the evening, because the trains let them; farmers come on "
    "market day; and on Sundays, when the rest of the street is closed, families fill the gallery with prams. Not "
    "everything is solved. The roof drips in two places, the lift is slow, the sign at the station still points "
    "towards the harbour, and the archive waits in crates for shelves that were promised for May. I left out the "
    "quarrel over the name, which is a story by itself. If you have time on Thursday, come and look at it before the "
    "ministry does; the caretaker will show you the cranes, and somebody will have put the coffee on. Bring the "
    "plans of the second floor with you, please, since the copy in my office is missing its last sheet. There is "
    "room for forty chairs, and two more doors than the fire brigade asked for. Everything else can wait."
)
CASES = {
    "blank": " ",
    "greeting": "Hi",
    "thanks": "Thanks, that was really helpful!",
    "question": "What did we discuss about the lease of the office?",
    "request": "Hi, can you deploy this?",
    "report": "The build is broken after the last change to the parser, and I have to fix it before noon",
    "paragraph": PARAGRAPH,
    "page": _PAGE[:INSPECTED_CHARACTERS],
    "megabyte": PARAGRAPH * (1_000_000 // len(PARAGRAPH)),
    "one word": "e" * 1_000_000,
    "all marks": ", " * 500_000,
    "references": "as I said, you told me last time. " * 30_000,
    "near misses": "you already said so we had just talked earlier " * 20_000,
    "invisible": "\u200b" * 1_000_000,
}
"""Name -> text. Beyond a page, the cost does not grow with the text, except if nothing in it is visible."""

REMEMBERED = msgspec.structs.replace(
    COLD, context_warmth=0.44, working_memory_turns=4, gist_count=1, fact_count=1, fact_keys=("f",), is_new_topic=False
)
"""What memory knows of a session of four turns, with a gist (an exchange in one line) and a fact."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Times are microseconds; ``budget_ratio`` says how many 99th percentiles fit into the budget.

    ``feedback_p99_us`` is the cost of the text as the input that follows an answer.
    """

    case: str
    characters: int
    mode: str
    signals_p50_us: float
    p50_us: float
    p99_us: float
    feedback_p99_us: float
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


def _session(text: str) -> Any:
    """Return the state of a session of four turns, all of them ``text``."""
    state = ACTOR.initial()
    for turn in range(4):
        state = ACTOR.evolve(state, _message(InputReceived(text=text), f"e{turn}", 2 * turn + 1))
        state = ACTOR.evolve(state, _message(_answer(), f"e{turn}", 2 * turn + 2))
    return state


def _row(case: str, text: str) -> Row:
    answered, received = _session(text), _message(InputReceived(text=text), "now", 9)
    state, recalled = (
        ACTOR.evolve(answered, received),
        _message(MemoryRecalled(familiarity=REMEMBERED, recollections=()), "now", 10),
    )
    (selected,) = ACTOR.decide(state, recalled)
    reading, _ = percentiles(lambda: read_text(text), SECONDS_PER_CASE)
    p50, p99 = percentiles(lambda: ACTOR.decide(state, recalled), SECONDS_PER_CASE)
    _, feedback_p99 = percentiles(lambda: ACTOR.decide(answered, received), SECONDS_PER_CASE)
    return Row(
        case=case,
        characters=len(text),
        mode=str(getattr(selected, "selected_mode", "")),
        signals_p50_us=round(reading, 1),
        p50_us=round(p50, 1),
        p99_us=round(p99, 1),
        feedback_p99_us=round(feedback_p99, 1),
        budget_ratio=round(BUDGET_US / p99, 1),
    )


def run() -> list[Row]:
    """Measure every case; about three seconds each at most."""
    return [_row(case, text) for case, text in CASES.items()]


def main() -> None:
    """Print the rows as a table."""
    print(
        f"{'case':12} {'chars':>8} {'mode':12} {'signals p50':>12} {'p50 us':>8} {'p99 us':>8} {'feedback p99':>13} "
        f"{'5 ms / p99':>11}"
    )
    rows = run()
    record(rows)
    for row in rows:
        print(
            f"{row.case:12} {row.characters:8} {row.mode:12} {row.signals_p50_us:12.1f} {row.p50_us:8.1f} "
            f"{row.p99_us:8.1f} {row.feedback_p99_us:13.1f} {row.budget_ratio:11.1f}"
        )


if __name__ == "__main__":
    main()
