"""What the senses keep of a session that is to be forgotten."""

from actors.appraisal import ACTOR
from schemas.persistent import encode_state
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered
from tests.actors.scenario import Address, Partition

TRAVEL, MUSIC = Address(session="travel", exchange="x1"), Address(session="music", exchange="x2")


def test_an_order_drops_its_session_s_topics_and_stimuli_and_no_other_s() -> None:
    partition = Partition(ACTOR)
    partition.hear(InputReceived(text="The trains to Lima are late"), TRAVEL)
    partition.hear(InputReceived(text="Who wrote this song?"), MUSIC)
    music = partition.state.sessions.get("agent\nmusic")
    assert partition.state.sessions.get("agent\ntravel") is not None
    partition.hear(ForgetOrdered(what="session", by="ann", why="she asked"), TRAVEL)
    assert partition.state.sessions.get("agent\ntravel") is None
    assert partition.state.sessions.get("agent\nmusic") == music
    assert b"travel" not in encode_state(partition.state)


def test_an_order_about_a_fact_or_an_unknown_session_changes_nothing() -> None:
    partition = Partition(ACTOR)
    partition.hear(InputReceived(text="The trains to Lima are late"), TRAVEL)
    before = partition.state.sessions
    partition.hear(ForgetOrdered(what="fact", key="name", by="ann", why="outdated"), TRAVEL)
    partition.hear(ForgetOrdered(what="session", by="ann", why="she asked"), MUSIC)
    assert partition.state.sessions == before
