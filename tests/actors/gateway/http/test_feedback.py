"""Feedback over HTTP: what is taken, what is refused, and who may have harm learned."""

from collections.abc import Mapping
from typing import Any

import httpx

from actors.gateway.http.feedback.service import RatedExchange, new_feedback
from actors.gateway.http.operator_endpoints import NotLearned
from actors.gateway.http.scopes import NotFound
from schemas.subjects import Partitions
from schemas.vocabulary.feedback import FeedbackGiven, HarmReported
from tests.actors.gateway.http.rig import gateway
from tests.each import each
from tests.events.simulated_world import in_world, log_of
from tests.simulated import SimulatedStream

KEY, OPERATOR = "k" * 24, "o" * 24
RATED = RatedExchange(exchange="e-1", agent="felix", session="lunch", mode="RESPOND")


class Learned:
    """Operations that note what they are told to learn."""

    def __init__(self) -> None:
        self.exchanges: list[str] = []

    async def learn_harm(self, exchange: str, by: str, why: str) -> str:
        self.exchanges.append(exchange)
        return f"verdict-{exchange}"


async def rated(exchange: str) -> RatedExchange:
    if exchange != RATED.exchange:
        raise NotFound(f"the log holds no exchange {exchange!r}")
    return RATED


def posted(
    *bodies: Mapping[str, Any], headers: Mapping[str, str] | None = None, **options: Any
) -> tuple[list[httpx.Response], list[Any]]:
    """Post bodies one after another; return the answers, and the events that were stored."""
    answers, stored = list[httpx.Response](), list[Any]()

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, rated=rated, **options) as client:
            for each in bodies:
                answers.append(await client.post("/v1/feedback", json=each, headers=headers))
        log = log_of(stream)
        async for batch in log.history([">"], 0, (await log.info()).last_seq):
            stored.extend(batch)

    in_world(body)
    return answers, stored


def test_feedback_becomes_an_event_of_its_exchange_once_however_often_it_is_sent():
    said = {"exchange": "e-1", "reward": 0.5, "comment": "good"}
    (first, again), stored = posted(said, said)
    assert (first.status_code, again.json()) == (202, first.json())
    (event,) = stored
    assert (event.headers["ce-id"], event.headers["ce-exchange"]) == (first.json()["event"], "e-1")
    assert (event.headers["ce-agent"], event.headers["ce-session"]) == ("felix", "lunch")
    assert b'"mode":"RESPOND"' in event.data
    assert first.json() == {"exchange": "e-1", "event": event.headers["ce-id"]}


def test_an_idempotency_key_makes_two_words_one_and_two_contents_are_two():
    words = [{"exchange": "e-1", "reward": 1.0}, {"exchange": "e-1", "reward": -1.0}]
    assert len(posted(*words)[1]) == 2
    assert len(posted(*words, headers={"Idempotency-Key": "k-1"})[1]) == 1


@each(
    ("body", "status", "word"),
    [
        ({"exchange": "e-1"}, 400, "reward, harmful or comment"),
        ({"exchange": "e-1", "comment": " "}, 400, "comment is blank"),
        ({"exchange": "e-1", "comment": "\u3164"}, 400, "comment is blank"),
        ({"exchange": "e-1", "reward": 1.1}, 400, "reward"),
        ({"exchange": "e-1", "reward": "1"}, 400, "reward"),
        ({"exchange": "e-1", "harmfull": True}, 400, "did you mean 'harmful'"),
        ({"reward": 1}, 400, "exchange"),
        ({"exchange": "none-such", "reward": 1}, 404, "none-such"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_field(body: Mapping[str, Any], status: int, word: str):
    (answer,), stored = posted(body)
    assert (answer.status_code, word in answer.text, stored) == (status, True, []), answer.text


def test_harm_is_learned_from_an_operator_alone_and_told_of_by_anybody():
    said = {"exchange": "e-1", "harmful": True}
    keys: dict[str, Any] = {"keys": (KEY,), "operator_keys": (OPERATOR,)}
    for key, learned, recorded in ((KEY, [], []), (OPERATOR, ["e-1"], ["access.operated"])):
        operations = Learned()
        (answer,), stored = posted(said, headers={"Authorization": f"Bearer {key}"}, operations=operations, **keys)
        assert (answer.status_code, operations.exchanges) == (202, learned)
        assert answer.json().get("precedent") == ("verdict-e-1" if learned else None)
        assert [each.subject.split(".", 3)[3] for each in stored] == ["feedback.harm_reported", *recorded]


def test_harm_that_an_operator_reports_and_that_is_not_learned_is_said_not_to_be():
    class Unlearned(Learned):
        async def learn_harm(self, exchange: str, by: str, why: str) -> str:
            raise NotLearned("its input was removed from the stream")

    (answer,), stored = posted({"exchange": "e-1", "harmful": True}, operations=Unlearned())
    assert answer.status_code == 202
    assert answer.json() == {
        "exchange": "e-1",
        "event": stored[0].headers["ce-id"],
        "not_learned": "its input was removed from the stream",
    }


def test_no_harm_is_no_report_of_harm_and_teaches_nothing():
    operations = Learned()
    (answer,), stored = posted({"exchange": "e-1", "harmful": False}, operations=operations)
    assert (answer.status_code, operations.exchanges) == (202, [])
    assert [each.subject.split(".", 3)[3] for each in stored] == ["feedback.given"]


def test_feedback_on_a_users_exchange_is_taken_from_that_user():
    options: dict[str, Any] = {"agent_per": "user"}
    (answer,), stored = posted({"exchange": "e-1", "reward": 1}, headers={"X-Neuraxis-User": "bob"}, **options)
    assert (answer.status_code, stored) == (404, [])


def test_ids_tell_exchanges_and_kinds_of_word_apart():
    def id_of(given: FeedbackGiven | HarmReported, exchange: str = "e-1", key: str = "") -> str:
        other = RatedExchange(exchange=exchange, agent="felix", session="lunch")
        return new_feedback(other, given, key, Partitions(), 0).record.headers["ce-id"]

    words = (FeedbackGiven(reward=1.0), FeedbackGiven(comment="x"), HarmReported())
    ids = [*map(id_of, words), id_of(words[0], "e-2"), id_of(words[0], key="k")]
    assert len(set(ids)) == len(ids)
    assert id_of(words[0], key="k") == id_of(words[1], key="k")
