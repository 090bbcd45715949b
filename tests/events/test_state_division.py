"""A divided state: each session's and agent's entries go to one partition, and what is of neither to all."""

import msgspec

from events.state_division import owned_entries, part_of
from schemas.actor import Scope, session_key
from schemas.persistent import ExpiringMap, JoinBuffer, Map


class Open(msgspec.Struct, frozen=True):
    session: str


class State(msgspec.Struct, frozen=True):
    level: int = 3
    sessions: ExpiringMap[str] = ExpiringMap()
    pending: Map[str, Open] = Map()
    joined: JoinBuffer[str] = JoinBuffer()
    minds: Map[str, str] = Map()


ADA, BEN = session_key("one", "ada"), session_key("two", "ben")
STATE = State(
    sessions=ExpiringMap(Map({ADA: "words"}), Map({BEN: "older words"}), since_ns=7),
    pending=Map({"exchange": Open(BEN)}),
    joined=JoinBuffer(settled=ExpiringMap(Map({"exchange": True}))),
    minds=Map({"one": "mind", "two": "mind", "exchange": "of neither"}),
)
AGENTS = frozenset({"one", "two"})


def test_each_session_goes_to_one_part_with_all_that_is_of_no_session() -> None:
    ada, ben = (part_of(STATE, Scope.SESSION, AGENTS, lambda key, name=name: key == name) for name in ("ada", "ben"))
    assert ada.sessions == ExpiringMap(Map({ADA: "words"}), Map(), since_ns=7)
    assert ben.sessions == ExpiringMap(Map(), Map({BEN: "older words"}), since_ns=7)
    assert (dict(ada.pending), dict(ben.pending)) == ({}, {"exchange": Open(BEN)})
    assert ada.joined is ben.joined is STATE.joined
    assert ada.minds is ben.minds is STATE.minds


def test_each_agent_goes_to_one_part_and_what_is_called_otherwise_to_all() -> None:
    one = part_of(STATE, Scope.AGENT, AGENTS, lambda key: key == "one")
    assert dict(one.minds) == {"one": "mind", "exchange": "of neither"}
    assert one.sessions == ExpiringMap(Map({ADA: "words"}), Map(), since_ns=7)


def test_entries_that_have_an_owner_are_counted_by_path_and_key() -> None:
    assert sorted(owned_entries(STATE, Scope.SESSION, AGENTS)) == [
        (".pending", "exchange"),
        (".sessions.old", BEN),
        (".sessions.young", ADA),
    ]


def test_a_state_of_one_owner_alone_is_the_same_object() -> None:
    assert part_of(STATE, Scope.SESSION, AGENTS, lambda _: True) is STATE
