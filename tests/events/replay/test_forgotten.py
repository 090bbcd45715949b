"""Verifying a log some of whose words nobody can read any more."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from events.log import Record, Stored
from events.replay.replay import Report
from events.sealing.sealed_texts import location_to_seal, open_texts, sealed_record
from schemas.actor import Actor, Message, Scope
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.reflex import ReflexPassed
from tests.actors.scenario import Address
from tests.events.recording import PARTITIONS, Recording
from tests.events.replaying import changed, verified
from tests.events.small_actors import DIARIST, Diary, NoSettings, blocked

FORGOTTEN = Address(agent="ann", session="forgotten", exchange="x1")
SAME_AGENT = Address(agent="ann", session="kept", exchange="x2")
OTHER_AGENT = Address(agent="bob", session="kept", exchange="x3")


class Shelf(msgspec.Struct, frozen=True):
    """The last words of each session, by agent and session."""

    words: tuple[tuple[str, str, str], ...] = ()


def shelve(shelf: Shelf, message: Message) -> Shelf:
    """Keep what an input says until its session is ordered to be forgotten."""
    others = tuple(each for each in shelf.words if each[:2] != (message.agent, message.session))
    if isinstance(message.event, InputReceived):
        return Shelf((*others, (message.agent, message.session, message.event.text)))
    return Shelf(others) if isinstance(message.event, ForgetOrdered) else shelf


def count_letters(shelf: Shelf, message: Message) -> Iterable[Event]:
    """Decide from what was said before, in whatever sessions of the agent the actor's partition has."""
    if isinstance(message.event, InputReceived):
        yield blocked(sum(len(words) for agent, _, words in shelf.words if agent == message.agent))


LIBRARIAN: Actor[Shelf] = Actor(
    name="reflex",
    scope=Scope.SESSION,
    consumes=(InputReceived, ForgetOrdered),
    state_type=Shelf,
    settings_type=NoSettings,
    initial=Shelf,
    decide=count_letters,
    evolve=shelve,
)


def count_inputs(diary: Diary, message: Message) -> Diary:
    return Diary((*diary.lines, message.id)) if isinstance(message.event, InputReceived) else diary


def pass_by_number(diary: Diary, message: Message) -> Iterable[Event]:
    if isinstance(message.event, InputReceived):
        yield blocked(len(diary.lines)) if len(diary.lines) % 2 else ReflexPassed()


COUNTER = replace(DIARIST, decide=pass_by_number, evolve=count_inputs)
"""Decides by how many inputs there were, whatever they say."""


def conversation(actor: Actor[object], *said: tuple[str, Address] | ForgetOrdered) -> list[Stored]:
    """Record what an actor answers to inputs, each after the last; an order is about the forgotten session."""
    recording = Recording([actor])
    for each in said:
        if isinstance(each, ForgetOrdered):
            recording.send(each, FORGOTTEN)
        else:
            recording.send(InputReceived(text=each[0]), each[1])
        recording.settle()
    return recording.log


def without_key(log: Sequence[Stored], session: str = "forgotten", upto: int = 1_000) -> list[Stored]:
    """Return a log as it is read once the key of a session's messages up to a sequence is destroyed."""
    return [
        closed(stored) if stored.headers.get("ce-session") == session and stored.seq <= upto else stored
        for stored in log
    ]


def closed(stored: Stored) -> Stored:
    part = location_to_seal(stored.headers)
    if part is None:
        return stored
    sealed = sealed_record(Record(stored.subject, stored.headers, stored.data), part, None)
    if sealed.headers is stored.headers:
        return stored
    return open_texts(Stored(stored.seq, stored.time_ns, stored.subject, sealed.headers, sealed.data), None)


def counts(report: Report) -> tuple[int, int, int]:
    """Return how many decisions came out the same, otherwise, and could not be made for want of words."""
    coverage = report.coverage["reflex"]
    assert report.unverified == coverage.unverified
    return coverage.identical, coverage.different, report.unverified.get("sealed", 0)


def test_a_decision_that_reads_forgotten_words_is_unverified_even_where_it_comes_out_the_same() -> None:
    log = conversation(DIARIST, ("none", FORGOTTEN), ("2", FORGOTTEN))
    report = verified([DIARIST], without_key(log))
    assert counts(report) == (0, 0, 2)
    assert report.clean
    assert counts(verified([DIARIST], log)) == (2, 0, 0)


def test_a_decision_that_reads_no_words_is_verified_by_its_numbers() -> None:
    log = conversation(COUNTER, ("one", FORGOTTEN), ("two", FORGOTTEN), ("three", FORGOTTEN))
    assert counts(verified([COUNTER], without_key(log))) == (3, 0, 0)


def test_a_wrong_decision_is_found_although_its_words_are_forgotten() -> None:
    log = without_key(conversation(COUNTER, ("one", FORGOTTEN), ("two", FORGOTTEN)))
    wrong = changed(log, 4, data=log[3].data.replace(b"pattern 1", b"pattern 7"))
    assert counts(verified([COUNTER], wrong)) == (1, 1, 0)


def test_what_an_actor_remembers_of_forgotten_words_makes_its_session_s_later_decisions_unverified() -> None:
    log = conversation(LIBRARIAN, ("first", FORGOTTEN), ("second", FORGOTTEN))
    # The first reads no words; the second, which is open, reads those of the first from the state.
    assert counts(verified([LIBRARIAN], without_key(log, upto=1))) == (1, 0, 1)
    keeping = replace(LIBRARIAN, decide=only_when_asked)
    log = conversation(keeping, ("first", FORGOTTEN), ForgetOrdered(what="fact", by="ann", why="w"))
    assert counts(verified([keeping], without_key(log))) == (1, 0, 1)


def test_an_input_without_words_ends_nothing_of_what_was_said_before() -> None:
    hoarding = replace(LIBRARIAN, evolve=hoard)
    log = conversation(hoarding, ("first", FORGOTTEN), ("", FORGOTTEN), ("third", FORGOTTEN))
    # The empty input is not sealed, since there is nothing to seal; what it and the third are decided by is.
    assert counts(verified([hoarding], without_key(log))) == (1, 0, 2)


def hoard(shelf: Shelf, message: Message) -> Shelf:
    """Keep all that was ever said."""
    if not isinstance(message.event, InputReceived):
        return shelf
    return Shelf((*shelf.words, (message.agent, message.session, message.event.text)))


def only_when_asked(shelf: Shelf, message: Message) -> Iterable[Event]:
    if isinstance(message.event, ForgetOrdered):
        yield blocked(sum(len(words) for _, _, words in shelf.words))


def test_other_sessions_are_verified_as_ever() -> None:
    said = ("1", FORGOTTEN), ("1", SAME_AGENT), ("1", OTHER_AGENT)
    log = without_key(conversation(DIARIST, *said))
    assert counts(verified([DIARIST], log)) == (2, 0, 1)
    wrong = changed(log, 4, data=log[3].data.replace(b'"s"', b'"t"'))
    assert counts(verified([DIARIST], wrong)) == (1, 1, 1)


def test_words_that_an_actor_shares_among_an_agent_s_sessions_leave_differences_there_unverified() -> None:
    sharing = replace(LIBRARIAN, scope=Scope.AGENT)
    said = ("private", FORGOTTEN), ("hello", SAME_AGENT), ("hello", OTHER_AGENT)
    assert counts(verified([sharing], without_key(conversation(sharing, *said)))) == (2, 0, 1)


def test_an_actor_that_has_forgotten_is_verified_again() -> None:
    order = ForgetOrdered(what="session", by="ann", why="she asked")
    sharing = replace(LIBRARIAN, scope=Scope.AGENT)
    log = conversation(sharing, ("private", FORGOTTEN), order, ("anew", FORGOTTEN), ("hello", SAME_AGENT))
    report = verified([sharing], without_key(log, upto=2))
    assert report.clean
    # The order itself is decided by what there still was to forget.
    assert counts(report) == (3, 0, 1)


def test_a_message_that_led_to_nothing_is_unverified_where_its_words_were_read() -> None:
    log = conversation(DIARIST, ("none", FORGOTTEN), ("1", OTHER_AGENT))
    assert counts(verified([DIARIST], without_key(log))) == (1, 0, 1)


def test_states_are_folded_from_what_is_left() -> None:
    log = conversation(DIARIST, ("1", FORGOTTEN))
    report = verified([DIARIST], without_key(log), verify=False)
    assert report.clean
    assert report.events == 2
    assert len(report.state_hashes) == 1
    assert PARTITIONS.session_token("forgotten") in next(iter(report.state_hashes))
