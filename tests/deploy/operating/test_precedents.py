"""Precedents from a file into the log and out again, over a real broker."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from actors.gateway.external_events import InvalidInput
from actors.gateway.operator_orders import Order, records_of
from deploy.operating.guarding.item_files import BadFile
from deploy.operating.guarding.precedents import precedents_in
from events.decoding import Recorded, decode
from events.jetstream import JetStreamLog
from events.log import MAX_BATCH, Stored
from schemas.event import Event
from schemas.permissions import worker_user
from schemas.subjects import Partitions
from schemas.vocabulary.operator import BreakerResetOrdered
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn
from tests.broker import Broker
from tests.deploy.operating.test_allowances import neuraxis, rows
from tests.each import each

FILE = """
- precedent: p-1
  description: asked for the password by phone
  harm_level: 0.9
- precedent: p-2
  description: asked for the opening hours
  situation: front desk
  answer: From nine to five.
"""


def written(**fields: Any) -> bytes:
    return json.dumps([{"precedent": "p-1", "description": "x", **fields}]).encode()


def test_what_a_file_says_becomes_events() -> None:
    assert precedents_in("f.yaml", FILE.encode(), "ann") == [
        PrecedentRecorded(
            precedent="p-1", description="asked for the password by phone", outcome="harmful", harm_level=0.9, by="ann"
        ),
        PrecedentRecorded(
            precedent="p-2",
            description="asked for the opening hours",
            situation="front desk",
            answer="From nine to five.",
            by="ann",
        ),
    ]


@each(
    ("raw", "message"),
    [
        (b"[]", "there is no precedent in it"),
        (written(precedent="p\n1"), "line 1: precedent: the name holds a control character (U+000A) at character 1"),
        (written(precedent=""), "line 1: precedent: Expected `str` of length >= 1"),
        (written(description=" "), "line 1: description: it is blank: write words, or leave it out"),
        (written(situation="\t"), "line 1: situation: it is blank"),
        (written(description="\u3164"), "line 1: description: it is blank"),
        (written(precedent="\u200b"), "line 1: precedent: the name is blank"),
        (written(answer=" "), "line 1: answer: it is blank"),
        (written(description=None), "line 1: description: Expected `str`"),
        (b'[{"precedent": "p"}]', "description is missing: a precedent needs precedent and description"),
        (written(harm_lvel=1), "line 1: there is no field 'harm_lvel': did you mean 'harm_level'?"),
        (written(harm_level=2), "line 1: harm_level: Expected `float` <= 1.0"),
        (written(answer="x" * 8_001), "line 1: answer: Expected `str` of length <= 8000"),
        (written(action="flee"), "line 1: action: Invalid enum value 'flee'"),
        (written(outcome="bad"), "outcome 'bad': write benign or harmful"),
        (written(outcome="harmful"), "a harmful outcome needs a harm_level above 0"),
        (written(outcome="benign", harm_level=0.5), "a benign outcome has none"),
        (
            b'[{"precedent": "p", "description": "x"},\n {"precedent": "p", "description": "y"}]',
            "line 2: 'p' was on line 1 already",
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused_and_the_line_named(raw: bytes, message: str) -> None:
    with pytest.raises(BadFile) as refused:
        precedents_in("f.json", raw, "ann")
    assert str(refused.value).startswith("f.json")
    assert message in str(refused.value)


def order(event: Event, **address: str) -> Order:
    return Order(event=event, **{"agent": "a", **address})


def test_an_order_s_record_carries_its_address_and_an_id_of_its_own() -> None:
    events = (
        order(PrecedentWithdrawn(precedent="p", by="ann", why="x"), session="ignored"),
        order(BreakerResetOrdered(by="ann", why="x"), session="s"),
    )
    first, second = records_of(events, Partitions(), 1_700_000_000_000_000_000)
    assert [first.subject, second.subject] == [
        "log.00._.precedent.withdrawn",
        "log.00.02.operator.breaker_reset_ordered",
    ]
    heard = [decode(Stored(1, 0, each.subject, each.headers, each.data)) for each in (first, second)]
    assert all(isinstance(each, Recorded) for each in heard)
    assert [(each.message.agent, each.message.session) for each in heard if isinstance(each, Recorded)] == [
        ("a", ""),
        ("a", "s"),
    ]
    again = records_of(events, Partitions(), 1_700_000_000_000_000_000)
    assert len({each.headers["Nats-Msg-Id"] for each in (first, second, *again)}) == 4


@each(
    "wrong",
    [
        order(PrecedentWithdrawn(precedent="p", by="ann", why="x"), agent=""),
        order(BreakerResetOrdered(by="ann", why="x")),
        order(BreakerResetOrdered(by="", why="x"), session="s"),
        order(PrecedentRecorded(precedent="p", description="\ud800")),
        order(PrecedentRecorded(precedent="p", description="x" * 1024 * 1024)),
    ],
)
def test_what_cannot_be_put_on_record_is_refused(wrong: Order) -> None:
    with pytest.raises(InvalidInput):
        records_of([wrong], Partitions(), 1)


@pytest.fixture
def with_log(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """A broker that holds an empty log, seen from an empty folder."""

    async def make() -> None:
        await (await JetStreamLog.connect(broker.url)).close()

    asyncio.run(make())
    monkeypatch.chdir(tmp_path)
    return broker


def test_precedents_are_imported_listed_and_withdrawn(with_log: Broker) -> None:
    Path("f.yaml").write_text(FILE)
    (told,) = rows(neuraxis(with_log, "precedents", "import", "f.yaml", "--by", "ann", "--json"))
    assert told == {"agent": "default", "recorded": 2, "unchanged": 0, "motifs": 1, "seq": 2}
    shown = rows(neuraxis(with_log, "precedents", "list", "--json"))
    assert [(row["precedent"], row["outcome"], row["by"], row["seq"]) for row in shown] == [
        ("p-1", "harmful", "ann", 1),
        ("p-2", "benign", "ann", 2),
    ]
    assert "agent 'other'" in neuraxis(with_log, "precedents", "list", "--agent", "other", status=1).stderr
    neuraxis(with_log, "precedents", "withdraw", "p-1", "--why", "a mistake")
    assert [row["precedent"] for row in rows(neuraxis(with_log, "precedents", "list", "--json"))] == ["p-2"]


def test_what_is_there_just_so_is_not_recorded_again(with_log: Broker) -> None:
    Path("f.yaml").write_text(FILE)
    neuraxis(with_log, "precedents", "import", "f.yaml", "--by", "ann")
    (told,) = rows(neuraxis(with_log, "precedents", "import", "f.yaml", "--by", "bob", "--json"))
    assert told == {"agent": "default", "recorded": 0, "unchanged": 2, "motifs": 0, "seq": None}
    Path("f.yaml").write_text(FILE.replace("nine to five", "eight to four"))
    said = neuraxis(with_log, "precedents", "import", "f.yaml").stdout
    assert said == "1 precedent recorded for agent default, 0 of them motifs of danger; 1 unchanged\n"
    shown = rows(neuraxis(with_log, "precedents", "list", "--json"))
    assert [(row["precedent"], row["seq"]) for row in shown] == [("p-1", 1), ("p-2", 3)]
    neuraxis(with_log, "precedents", "withdraw", "p-1", "--why", "a mistake")
    (told,) = rows(neuraxis(with_log, "precedents", "import", "f.yaml", "--json"))
    assert (told["recorded"], told["unchanged"], told["seq"]) == (1, 1, 5)


def test_precedents_of_an_agent_that_no_input_can_name_are_refused(with_log: Broker) -> None:
    refused = neuraxis(with_log, "precedents", "import", "-", "--agent", "a\nb", stdin=FILE, status=2)
    assert "the agent holds a control character (U+000A) at character 1" in refused.stderr


def test_a_bad_file_is_refused_whole(with_log: Broker) -> None:
    bad = '{"precedent": "p-1", "description": "x"}\n{"precedent": "p-2"}\n'
    result = neuraxis(with_log, "precedents", "import", "-", stdin=bad, status=2)
    assert "-, line 2: description is missing: a precedent needs" in result.stderr
    assert rows(neuraxis(with_log, "precedents", "list", "--json")) == []


def test_what_is_not_there_cannot_be_withdrawn(with_log: Broker) -> None:
    result = neuraxis(with_log, "precedents", "withdraw", "p-9", "--why", "x", status=1)
    assert "agent default has no precedent 'p-9'" in result.stderr


def test_a_file_longer_than_a_batch_is_stored_in_order(with_log: Broker) -> None:
    lines = "\n".join(f'{{"precedent": "p-{n}", "description": "number {n}"}}' for n in range(MAX_BATCH + 5))
    neuraxis(with_log, "precedents", "import", "-", stdin=lines)
    shown = rows(neuraxis(with_log, "precedents", "list", "--json"))
    assert [row["precedent"] for row in shown] == [f"p-{n}" for n in range(MAX_BATCH + 5)]


def test_only_the_operator_may_record_precedents() -> None:
    allowed = worker_user("person", ("gateway", "operator")).permissions.publish_allow
    assert "log.*.*.precedent.>" in allowed
    assert "log.*.*.precedent.>" not in worker_user("worker", ("intuition",)).permissions.publish_allow
