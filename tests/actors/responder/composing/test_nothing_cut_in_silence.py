"""What does not fit a model's context is cut where it does least harm, counted, and told."""

import re

import msgspec

from actors.contract.text.shortening import estimate
from actors.guardrails.critic import critique_call as ask_critic
from actors.guardrails.settings import GuardrailsSettings
from actors.responder.composing.prompting import request_for
from actors.responder.pending import Turn
from actors.responder.settings import ResponderSettings
from actors.router.tiebreak import tiebreak_call as ask_tiebreaker
from schemas.catalogue import entry_of
from schemas.effectors.model_calls import Cut
from schemas.vocabulary.gateway import Layer
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.router import ModeSelected
from tests.actors.responder.builders import Requested, asked, ended, memory, with_model
from tests.actors.responder.composing.test_prompting import blocks_in, context_of, last_message
from tests.actors.scenario import Address
from tests.each import each

QUESTION = "So, which of these lines says why the pump stopped?"
LOG = "".join(f"{number:04}: the pump was idle, and nothing else happened.\n" for number in range(2000))


def small(**settings: object) -> ResponderSettings:
    return msgspec.convert({"backend": "llm", "context_tokens": 4096, **settings}, ResponderSettings)


def cuts(**changes: object) -> dict[str, Cut]:
    return {cut.part: cut for cut in request_for(context_of(**changes), "RESPOND").call.cuts}  # type: ignore[arg-type]


def test_a_question_behind_seven_kilobytes_reaches_the_model_whole() -> None:
    text = LOG[:6700] + QUESTION
    request = request_for(context_of(text, settings=small()), "RESPOND")
    assert last_message(request) == text
    assert request.call.cuts == ()


def test_of_an_input_larger_than_the_context_both_ends_and_the_question_reach_the_model() -> None:
    text = f"{LOG[:40_000]}\n{QUESTION}\n{LOG[40_000:]}"
    request = request_for(context_of(text, settings=small()), "RESPOND")
    message = last_message(request)
    assert message.startswith("0000:")
    assert QUESTION in message
    assert message.endswith("1999: the pump was idle, and nothing else happened.\n")
    [cut] = request.call.cuts
    assert (cut.part, cut.characters) == ("text", len(text))
    assert cut.kept == len(re.sub(r"\n\[… [\d,]+ characters left out …\]\n", "", message)) > 8000


@each("context_tokens", [512, 1024, 4096, 32_768])
def test_prompt_and_answer_fit_the_context_however_much_there_is(context_tokens: int) -> None:
    context = context_of(
        LOG,
        settings=small(context_tokens=context_tokens, soul="You are calm. " * 1000),
        turns=tuple(Turn(LOG[:600], LOG[:600]) for _ in range(4)),
        layers=tuple(Layer(role="document", content=LOG) for _ in range(30)),
        recollections=tuple(memory(LOG[:190], energy=0.5, id=f"fact:{place}") for place in range(6)),
    )
    call = request_for(context, "RESPOND").call
    assert sum(estimate(said.content) for said in call.messages) + call.most_tokens <= context_tokens
    assert call.messages[-1].content.strip()


def test_words_and_documents_share_what_the_context_leaves_and_neither_is_cut_while_both_fit() -> None:
    both = context_of(LOG[:4000], settings=small(), layers=(Layer(role="document", content=LOG[:4000]),))
    assert request_for(both, "RESPOND").call.cuts == ()
    found = cuts(text=LOG + QUESTION, settings=small(), layers=(Layer(role="document", content=LOG),))
    assert set(found) == {"text", "document, part 1 of 1"}
    assert all(cut.kept > 2000 for cut in found.values())


def test_a_short_document_is_whole_beside_a_long_one() -> None:
    layers = (Layer(role="document", content=LOG), Layer(role="tool", content='{"rows": 3}'))
    request = request_for(context_of("Well?", settings=small(), layers=layers), "RESPOND")
    assert dict(blocks_in(last_message(request)))["tool, part 2 of 2"] == '{"rows": 3}'
    assert [cut.part for cut in request.call.cuts] == ["document, part 1 of 2"]


def test_documents_that_find_no_room_at_all_are_told() -> None:
    layers = tuple(Layer(role="document", content=f"Page {place} is about pumps.") for place in range(200))
    found = cuts(text="Well?", settings=small(), layers=layers)
    shown = blocks_in(last_message(request_for(context_of("Well?", settings=small(), layers=layers), "RESPOND")))
    assert len(shown) + len(found) == 200
    assert {cut.kept for cut in found.values()} == {0}
    assert [name for name, _ in shown][-1] == "document, part 200 of 200"


@each(
    ("part", "known"),
    [
        ("turns", {"turns": tuple(Turn(LOG[:600], LOG[:600]) for _ in range(4))}),
        ("memories", {"recollections": (memory(LOG[:900], energy=0.9),)}),
        ("memories", {"findings": (memory(LOG[:900], energy=0.9, layer="gist"),)}),
        ("prompt soul", {"settings": small(context_tokens=1024, soul="You are calm. " * 1000)}),
    ],
    named=["history", "recollections", "findings", "soul"],
)
def test_every_other_part_that_is_cut_is_told(part: str, known: dict[str, object]) -> None:
    cut = cuts(text="Well?", **known)[part]
    assert 0 < cut.kept < cut.characters


def test_what_fits_is_not_told_to_be_cut() -> None:
    known = {"turns": (Turn("Hello.", "Hello, Ada."),), "recollections": (memory("name: Ada", energy=0.9),)}
    assert cuts(text="Well?", **known) == {}


def test_of_a_long_turn_both_ends_are_remembered_and_the_loss_is_told_with_the_next_prompt() -> None:
    responder = with_model()
    first = Address(exchange="one")
    responder.hear(asked(LOG[:3000] + QUESTION), first)
    responder.hear(Requested(responder, "RESPOND", first).completed("Line 7."), first)
    responder.hear(asked("Are you sure?"), Address(exchange="two"))
    call = Requested(responder, "RESPOND", Address(exchange="two")).event.call
    assert call.messages[1].content.endswith(QUESTION)
    assert call.messages[1].content.startswith("0000:")
    [cut] = call.cuts
    assert (cut.part, cut.characters) == ("turns", 3000 + len(QUESTION) + len("Line 7."))


def test_the_end_of_an_exchange_tells_what_was_cut_by_whom_ever() -> None:
    responder = with_model(context_tokens=1024)
    responder.hear(asked(LOG))
    requested = Requested(responder, "RESPOND")
    besides = Cut(part="text", characters=2000, kept=900)
    completed = msgspec.structs.replace(requested.completed(), cuts=(besides,))
    end = ended([message.event for message in responder.hear(completed)])
    assert end.cuts == (*requested.event.call.cuts, besides)
    assert end.cuts[0].characters == len(LOG)


@each("how", ["length", "content_filter", "unknown", "stop"])
def test_the_end_of_an_exchange_tells_how_the_models_answer_ended(how: str) -> None:
    responder = with_model()
    responder.hear(asked())
    completed = msgspec.structs.replace(Requested(responder, "RESPOND").completed(), ended=how)
    assert ended([message.event for message in responder.hear(completed)]).finish_reason == how


def test_the_composers_answers_are_of_no_model_and_end_in_no_way() -> None:
    responder = with_model()
    responder.hear(asked(LOG))
    end = ended([message.event for message in responder.hear(Requested(responder, "RESPOND").failed())])
    assert (end.finish_reason, end.cuts) == ("", ())
    assert entry_of(LlmCompleted).sample.ended == "stop"


def test_a_tie_break_sees_both_ends_of_a_message_and_tells_what_it_does_not() -> None:
    selected = msgspec.structs.replace(
        entry_of(ModeSelected).sample,
        tiebreaker_candidates=("RESPOND", "CLARIFY"),
        scores={"RESPOND": 0.5, "CLARIFY": 0.5},
    )
    call = ask_tiebreaker(LOG + QUESTION, selected, 1000).call
    assert call.messages[1].content.endswith(QUESTION)
    assert [cut.part for cut in call.cuts] == ["text"]


def test_a_critic_sees_both_ends_of_question_and_answer_and_tells_what_it_does_not() -> None:
    call = ask_critic("loop", LOG + QUESTION, LOG + "That is why.", GuardrailsSettings()).call
    assert QUESTION in call.messages[1].content
    assert "That is why." in call.messages[1].content
    assert [(cut.part, cut.kept < cut.characters) for cut in call.cuts] == [("question", True), ("answer", True)]
