"""What is ordered to be forgotten is out of the state, to the word, and nothing else is."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.memory.forgetting import quote_matcher
from actors.memory.layers.concepts import links_of
from actors.memory.settings import MemorySettings
from events.sealing.sealed_texts import CLOSED_TEXT
from schemas.actor import Message
from schemas.persistent import encode_state
from schemas.vocabulary.act import Action
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import SESSIONS_AT_ONCE, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.wording.personal import change_personal, personal_location
from tests.actors.memory.builders import (
    ESCALATED,
    EVERYTHING,
    act,
    ask,
    begin,
    forget,
    ids,
    mind,
    partition,
    response,
    talk,
    texts,
)
from tests.actors.scenario import Address, Partition

EAST = (100, 0)


def holds(memory: Partition, word: str) -> bool:
    """Whether a word is anywhere in the encoded state, in any case."""
    return word.lower().encode() in encode_state(memory.state).lower()


def test_a_forgotten_session_is_out_of_every_layer():
    memory = partition(EVERYTHING)
    talk(memory, "My password is swordfish", "e1", vector=EAST, answer="I will keep swordfish.")
    event = forget(memory)
    # a turn, a gist, a fact, an episode, and the concepts password and swordfish
    assert (event.what, event.key, event.by, event.why, event.count) == ("session", "", "ann", "asked to", 6)
    assert not holds(memory, "swordfish")
    assert ask(memory, "password swordfish", vector=EAST).recollections == ()
    assert not ask(memory, "And?", "e3").familiarity.world_state_present


def test_other_sessions_and_agents_keep_what_is_theirs():
    memory = partition(EVERYTHING)
    talk(memory, "The llama met Ada", "e1", session="morning")
    talk(memory, "The llama is ill", "e2", session="evening")
    talk(memory, "The llama met Ada", "e3", session="morning", agent="other")
    forget(memory, session="morning")
    assert set(mind(memory).concepts) == {"llama", "ill"}
    assert list(mind(memory).episodes.kept) == [2]
    assert len(mind(memory, "other").episodes.kept) == 1


def test_a_link_between_words_is_forgotten_though_both_were_said_elsewhere():
    memory = partition()
    talk(memory, "Ada divorce", "e1", session="secret")
    talk(memory, "Ada", "e2", session="other")
    talk(memory, "divorce", "e3", session="other")
    forget(memory, session="secret")
    known = mind(memory)
    assert set(known.concepts) == {"ada", "divorce"}
    assert links_of("ada", known.concepts, known.episodes.kept) == {}


def test_what_an_earlier_session_told_is_known_again_when_the_later_one_is_forgotten():
    memory = partition()
    talk(memory, "My name is Ada", "e1", session="morning")
    talk(memory, "My name is Eve", "e2", session="evening")
    assert texts(ask(memory, "What is my name?", "q1", session="other"))[0] == "name: Eve"
    forget(memory, session="evening")
    assert texts(ask(memory, "What is my name?", "q2", session="other"))[0] == "name: Ada"
    assert not holds(memory, "Eve")


def test_a_forgotten_fact_takes_all_that_quotes_it():
    memory = partition(EVERYTHING)
    talk(memory, "My password is swordfish", "e1", session="morning")
    talk(memory, "Type SwordFish, then wait", "e2", session="evening")
    talk(memory, "The sky is blue", "e3", session="evening", answer="As blue as a swordfish!")
    talk(memory, "Swordfishes swim", "e4", session="evening")
    begin(memory, "Is it swordfish?", Address(exchange="open"))
    event = forget(memory, key="My Password")
    assert (event.what, event.key, event.exchanges, event.facts) == ("fact", "My Password", (1, 2, 3), (1,))
    assert list(mind(memory).episodes.kept) == [4], "other words stay"
    assert not holds(memory, "swordfish,")
    assert not holds(memory, "password")
    assert event.count == 3 * 3 + 1 + len({"password", "swordfish", "type", "wait", "sky", "blue"})


def test_the_sessions_in_which_a_forgotten_fact_was_said_are_named():
    memory = partition(EVERYTHING)
    talk(memory, "My password is swordfish", "e1", session="morning")
    talk(memory, "The sky is blue", "e2", session="noon")
    talk(memory, "My password is swordfish", "e3", session="morning", agent="other")
    talk(memory, "What is it?", "e4", session="evening", answer="swordfish!")
    begin(memory, "Is it swordfish?", Address(session="night", exchange="open"))
    order = ForgetOrdered(what="fact", key="password", by="ann", why="asked to")
    _, said_in = memory.when(order, Address(session="operator", exchange=""))
    assert said_in == TurnsForgotten(sessions=("evening", "morning", "night"))


def test_of_many_sessions_each_is_named_once():
    memory = partition(EVERYTHING)
    for number in range(SESSIONS_AT_ONCE + 1):
        talk(memory, "My password is swordfish", f"e{number}", session=f"s{number:04d}")
    order = ForgetOrdered(what="fact", key="password", by="ann", why="asked to")
    _, *said_in = memory.when(order, Address(session="operator", exchange=""))
    named = [each.sessions for each in said_in if isinstance(each, TurnsForgotten)]
    assert [len(each) for each in named] == [SESSIONS_AT_ONCE, 1]
    assert len({*named[0], *named[1]}) == SESSIONS_AT_ONCE + 1


def test_earlier_values_of_a_forgotten_fact_go_too():
    memory = partition()
    talk(memory, "My password is swordfish", "e1")
    talk(memory, "My password is mackerel", "e2")
    forget(memory, key="password")
    assert not holds(memory, "swordfish")
    assert not holds(memory, "mackerel")


def test_forgetting_an_opinion_does_not_take_all_that_anybody_likes():
    memory = partition()
    talk(memory, "I like jazz", "e1")
    talk(memory, "My brother likes it", "e2")
    forget(memory, key="opinion of jazz")
    assert list(mind(memory).episodes.kept) == [2]
    assert not holds(memory, "jazz")


def test_forgetting_what_is_not_known_drops_nothing_and_says_so():
    memory = partition()
    talk(memory, "My name is Ada", "e1")
    before = encode_state(memory.state)
    assert forget(memory, key="birthday").count == 0
    assert forget(memory, session="another").count == 0
    assert forget(memory, agent="nobody", key="name").count == 0
    assert encode_state(memory.state) == before


def test_an_open_exchange_of_a_forgotten_session_goes_on_with_nothing_in_mind():
    memory = partition(EVERYTHING)
    talk(memory, "The llama is ill", "e1", session="other", vector=EAST)
    here = Address(exchange="open")
    begin(memory, "My password is swordfish", here, EAST)
    forget(memory)
    assert not holds(memory, "swordfish")
    (event,) = memory.when(ESCALATED, here)
    assert event.recollections == ()  # type: ignore[attr-defined]
    assert memory.when(response("swordfish"), here) == []
    assert not holds(memory, "swordfish")


def test_concepts_that_had_been_pushed_out_come_back_and_are_not_counted():
    memory = partition(MemorySettings(concepts=2, concepts_per_exchange=2))
    talk(memory, "llama bridge", "e1", session="other")
    talk(memory, "swordfish", "e2")
    assert forget(memory).count == 4  # a turn, a gist, an episode and a concept
    assert set(mind(memory).concepts) == {"llama", "bridge"}


def test_a_session_may_begin_anew_after_it_was_forgotten():
    memory = partition()
    talk(memory, "My name is Ada", "e1")
    forget(memory)
    talk(memory, "My name is Eve", "e2")
    assert ids(ask(memory, "What is my name?"))[0] == "fact:2", "numbers go on"
    assert ask(memory, "And?", "e4").familiarity.session_exchange_count == 2


def test_what_was_memorized_is_forgotten_with_its_session():
    memory = partition()
    here = Address(exchange="e1")
    begin(memory, "Hello there", here)
    act(memory, Action(index=0, skill="memorize", key="password", value="swordfish"), here=here)
    assert holds(memory, "swordfish")
    forget(memory)
    assert not holds(memory, "swordfish")


def test_a_session_that_has_outlived_its_lifetime_is_forgotten_too():
    memory = partition()
    talk(memory, "My password is swordfish", "e1")
    memory.hear(InputReceived(text="hello"), Address(session="other", exchange="e2"), after_ms=30 * 3_600_000)
    assert holds(memory, "swordfish")
    order = ForgetOrdered(what="session", by="ann", why="asked to")
    memory.hear(order, Address(exchange=""))
    assert not holds(memory, "swordfish")


def test_values_are_quoted_in_whole_words():
    quotes = quote_matcher(["New  York!", "it"])
    assert quotes("to new york.")
    assert quotes("New-York")
    assert not quotes("New Yorkers")
    assert not quotes("York, new")
    assert not quotes("it is")


SECRETS = ["zyxomma", "quillon", "vortice"]
OTHERS = ["llama", "bridge", "river"]
FORMS = ["My {} is {}", "I like {} and {}", "Remember that {} met {}", "{} or {}?", "Call me {}. {}"]
FORMS += ["I no longer like {}. {}", "I used to like {} {}", "My {} is no longer {}", "I'm allergic to {} and {}"]
sayings = st.builds(
    lambda form, one, other: form.format(one, other),
    st.sampled_from(FORMS),
    st.sampled_from(SECRETS),
    st.sampled_from([*SECRETS, *OTHERS]),
)
plain = st.builds(
    lambda form, one, other: form.format(one, other),
    st.sampled_from(FORMS),
    st.sampled_from(OTHERS),
    st.sampled_from(OTHERS),
)


@given(st.lists(st.tuples(st.just("secret"), sayings) | st.tuples(st.just("other"), plain), max_size=10), st.booleans())
@settings(deadline=None, max_examples=60)
def test_forgetting_a_session_leaves_none_of_its_words(talked: list[tuple[str, str]], leave_open: bool):
    memory = partition()
    for number, (session, text) in enumerate(talked):
        talk(memory, text, f"e{number}", session=session, vector=(number, 1), answer=text)
    if leave_open:
        begin(memory, f"And {SECRETS[0]}?", Address(session="secret", exchange="open"))
    forget(memory, session="secret")
    assert [word for word in SECRETS if holds(memory, word)] == []
    assert len(mind(memory).episodes.kept) == sum(session == "other" for session, _ in talked)


@given(st.lists(sayings, min_size=1, max_size=8), st.sampled_from(SECRETS))
@settings(deadline=None, max_examples=60)
def test_forgetting_a_fact_leaves_none_of_the_words_of_its_value(talked: list[str], value: str):
    memory = partition()
    for number, text in enumerate([f"My secret is {value}", *talked]):
        talk(memory, text, f"e{number}", session=f"s{number % 3}", vector=(number, 1), answer=text)
    forget(memory, key="secret")
    assert not holds(memory, value)


def sealed(message: Message) -> Message:
    """Return a message as a replay reads it once the key of the secret session is gone."""
    part = personal_location(type(message.event))
    if message.session != "secret" or part is None:
        return message
    return msgspec.structs.replace(message, event=change_personal(part, message.event, lambda *_: CLOSED_TEXT))


@given(
    st.lists(
        st.tuples(st.sampled_from(["secret", "other", "third"]), sayings | plain, st.sampled_from(["", "act", "fact"])),
        max_size=12,
    )
)
@settings(deadline=None, max_examples=60)
def test_once_a_session_is_forgotten_a_log_without_its_words_leads_to_the_same_state(
    talked: list[tuple[str, str, str]],
):
    small = MemorySettings(
        turns=2, gists=3, facts_per_topic=3, facts=5, episodes=6, concepts=5, meetings=2, concepts_per_exchange=3
    )
    live, replayed = partition(small), partition(small)
    heard: list[Message] = []
    live.fold = lambda *messages: (heard.extend(messages), Partition.fold(live, *messages))  # type: ignore[method-assign]
    for number, (session, text, deed) in enumerate(talked):
        here = Address(session=session, exchange=f"e{number}")
        begin(live, text, here, (number, 1))
        live.hear(ESCALATED, here)
        if deed == "act":
            act(live, Action(index=0, skill="memorize", key=text, value=text), here=here)
        live.hear(response(text), here)
        if deed == "fact":
            forget(live, key=text.split()[1], session="operator")
    forget(live, session="secret")
    replayed.fold(*(sealed(message) for message in heard))
    assert replayed.state_hash() == live.state_hash()
