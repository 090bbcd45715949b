"""What the actions of an ACT iteration come to."""

from schemas.vocabulary.act import ActActionsRequested, Action
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import Fact
from tests.actors.memory.builders import act, ask, begin, forget, ids, mind, partition, response, talk, texts
from tests.actors.scenario import Address, Partition
from tests.each import each

HERE = Address(exchange="question")
EAST = (100, 0)


def opened(text: str = "What do you know?") -> Partition:
    """Return a partition in which an exchange is open."""
    memory = partition()
    begin(memory, text, HERE)
    return memory


def test_results_name_the_request_and_the_iteration_and_keep_the_order():
    memory = opened()
    actions = (Action(index=3, skill="introspect"), Action(index=1, skill="recall", query="x"))
    (message,) = memory.hear(ActActionsRequested(iteration=2, actions=actions), HERE)
    request = message.event.request  # type: ignore[attr-defined]
    assert len(request) == 32
    assert message.event.iteration == 2  # type: ignore[attr-defined]
    assert [(each.index, each.skill) for each in message.event.results] == [(3, "introspect"), (1, "recall")]  # type: ignore[attr-defined]


@each("exchange", ["nobody", "ended"])
def test_nothing_is_answered_for_an_exchange_that_is_not_open(exchange: str):
    memory = partition()
    talk(memory, "Hello", "ended")
    asked = ActActionsRequested(iteration=0, actions=(Action(index=0, skill="introspect"),))
    assert memory.when(asked, Address(exchange=exchange)) == []


def test_recall_uses_the_exchanges_own_embedding_and_the_querys_words():
    memory = partition()
    talk(memory, "The bridge is closed", "e1", vector=EAST)
    talk(memory, "My cat is Tom", "e2")
    begin(memory, "Anything new?", HERE, EAST)
    (result,) = act(memory, Action(index=0, skill="recall", query="my cat"), here=HERE).results
    assert ids(result) == ["turn:1", "fact:1"]


def test_recall_that_finds_nothing_is_ok_and_empty():
    (result,) = act(opened(), Action(index=0, skill="recall", query="llamas"), here=HERE).results
    assert (result.ok, result.reason, result.recollections) == (True, "", ())


def test_what_is_memorized_is_known_from_the_answer_on():
    memory = opened()
    memorize = Action(index=0, skill="memorize", key="My Shoe Size", value=" 43 ")
    recall = Action(index=1, skill="recall", query="shoe size")
    event = act(memory, memorize, recall, here=HERE)
    assert event.stored == (Fact(key="shoe size", value="43"),)
    assert [result.ok for result in event.results] == [True, True]
    assert event.results[1].recollections == (), "it takes effect with the event"
    (found,) = act(memory, recall, here=HERE).results
    assert texts(found) == ["shoe size: 43"]


def test_what_is_memorized_is_in_the_gist_of_its_exchange_too():
    memory = opened()
    act(memory, Action(index=0, skill="memorize", value="to buy milk"), here=HERE)
    (remembered,) = memory.when(response("Done."), HERE)
    assert " Noted: to buy milk." in remembered.gist  # type: ignore[attr-defined]
    assert any("buy milk" in each for each in texts(ask(memory, "What should I buy?", "e2", session="later")))


def test_a_forgotten_note_leaves_no_gist():
    memory = opened()
    act(memory, Action(index=0, skill="memorize", key="password", value="swordfish"), here=HERE)
    forget(memory, key="password")
    assert memory.when(response("Done."), HERE) == []


def test_what_is_memorized_belongs_to_the_exchanges_topic():
    memory = opened()
    act(memory, Action(index=0, skill="memorize", key="shoe size", value="43"), here=HERE)
    assert ask(memory, "And?", "e2").familiarity.fact_keys == ("shoe size",)


def test_nothing_to_memorize_is_a_reason():
    event = act(opened(), Action(index=0, skill="memorize", key="name", value=" "), here=HERE)
    assert event.stored == ()
    assert (event.results[0].ok, event.results[0].reason) == (False, "nothing_to_memorize")


def test_associate_spreads_from_what_the_query_names():
    memory = partition()
    talk(memory, "Peru Lima", "e1")
    talk(memory, "Lima river", "e2")
    begin(memory, "And?", HERE)
    (result,) = act(memory, Action(index=0, skill="associate", query="Tell me of Peru"), here=HERE).results
    found = [(each.layer, each.text, each.energy) for each in result.recollections]
    assert found == [("concept", "lima (with peru, river)", 0.7)]
    (whole,) = act(memory, Action(index=0, skill="associate", query="Peru river"), here=HERE).results
    assert [each.text for each in whole.recollections] == ["lima (with peru, river)"]


def test_associate_on_nothing_known_finds_nothing():
    (result,) = act(opened(), Action(index=0, skill="associate", query="unheard"), here=HERE).results
    assert (result.ok, result.recollections) == (True, ())


def test_introspection_tells_warmth_knowing_failures_counts_and_skills():
    memory = partition()
    talk(memory, "My name is Ada", "e1", vector=EAST)
    ask(memory, "Any llamas?", "e2")
    begin(memory, "Anything new?", HERE, (60, 80))
    act(memory, Action(index=0, skill="recall", query="unheard-of llamas"), here=HERE)
    act(memory, Action(index=0, skill="delegate", query="x"), here=HERE)
    (result,) = act(memory, Action(index=0, skill="introspect"), here=HERE).results
    seen = result.introspection
    assert seen is not None
    assert seen.context_warmth == 0.215  # one gist, one fact, one turn
    assert seen.feeling_of_knowing == 0.6
    assert seen.recall_failure_rate == 0.5
    assert seen.layers == {"turn": 1, "gist": 1, "fact": 1, "episode": 1, "concept": 2}
    assert seen.skills == {"recall": 1}
    assert not seen.world_state_present


def test_the_failure_rate_is_that_of_the_last_twenty_recalls():
    memory = partition()
    for number in range(15):
        ask(memory, "Any llamas?", f"before {number}")
    talk(memory, "The llama is ill", "e1")
    for number in range(10):
        ask(memory, "Any llamas?", f"after {number}")
    begin(memory, "And?", HERE)
    (result,) = act(memory, Action(index=0, skill="introspect"), here=HERE).results
    assert result.introspection is not None
    assert result.introspection.recall_failure_rate == 0.5
    assert len(mind(memory).recalls) == 20


@each(("skill", "reason"), [("delegate", "not_memorys"), ("fly", "unknown_skill")])
def test_what_is_not_memorys_names_its_reason(skill: str, reason: str):
    (result,) = act(opened(), Action(index=0, skill=skill, query="x"), here=HERE).results  # type: ignore[arg-type]
    assert (result.ok, result.reason) == (False, reason)


def test_an_exchange_of_a_forgotten_session_is_answered_and_memorizes_nothing():
    memory = opened()
    forget(memory)
    actions = (Action(index=0, skill="memorize", key="name", value="Ada"), Action(index=1, skill="recall", query="Ada"))
    event = act(memory, *actions, here=HERE)
    assert [(each.ok, each.reason) for each in event.results] == [(False, "exchange_forgotten"), (True, "")]
    assert len(mind(memory).facts) == 0


def test_a_repeated_input_does_not_reopen_an_exchange():
    memory = partition()
    talk(memory, "Hello", "question")
    memory.hear(InputReceived(text="Hello"), HERE)
    assert memory.when(ActActionsRequested(iteration=0, actions=()), HERE) == []
