"""An event from outside says which version its body is in, as an actor's does: else a reader would upcast it again."""

import msgspec
import pytest

from actors.gateway.external_events import build_event
from events.decoding import Recorded, decode
from events.log import Stored
from events.make_decision import Cause, address_events
from events.replay.whatif.partition import recorded_of
from schemas.catalogue import CATALOGUE, owned_by
from schemas.entry import Entry
from schemas.subjects import NO_PARTITION, Partitions
from schemas.versions import UPCASTERS

PARTITIONS = Partitions(agents=1, sessions=1)
FROM_OUTSIDE = [entry for owner in ("gateway", "operator") for entry in owned_by(owner)]


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later release, in which every event that comes from outside means something else than in the one before."""

    def refuse(_: dict[str, object]) -> dict[str, object]:
        raise ValueError("it is of the present version")

    for entry in FROM_OUTSIDE:
        monkeypatch.setitem(CATALOGUE, entry.topic, msgspec.structs.replace(entry, version=2))
        monkeypatch.setitem(UPCASTERS, (entry.topic, 1), refuse)  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", FROM_OUTSIDE, ids=lambda entry: entry.topic)
def test_what_comes_from_outside_is_read_as_it_was_written(entry: Entry, raised: None) -> None:
    made = build_event(entry.sample, id="a" * 32, partitions=PARTITIONS, now_ns=1, agent="ann", session="noon")
    found = decode(Stored(1, 1, made.record.subject, made.record.headers, made.record.data))
    assert isinstance(found, Recorded), found
    assert (found.message.event, found.envelope.version) == (entry.sample, 2)


def test_so_does_a_decision_of_a_second_timeline(raised: None) -> None:
    sample = CATALOGUE["forged_id.input.received"].sample
    cause = Cause("c" * 32, 1, 1, "ann", "noon", "e", "00", NO_PARTITION)
    (decided,) = address_events("gateway", cause, (sample,), PARTITIONS)
    assert recorded_of(decided, 2, 2).envelope.version == 2
