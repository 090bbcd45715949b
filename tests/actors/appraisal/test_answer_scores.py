"""A model's answer in numbers: when it is appraised, what they rest on, and that real answers pass."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.appraisal import ACTOR
from actors.appraisal.answer_scores import LITERAL, SEMANTIC, Scale, Scores, scores_of, with_request
from actors.appraisal.answer_scores import new_pending as awaited
from actors.appraisal.measures.biases import bias_tags_of
from actors.appraisal.measures.embedder import model_of
from actors.appraisal.measures.piecewise_linear import interpolated
from actors.appraisal.settings import AppraisalSettings
from schemas.persistent import Map
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.llm import ENTRIES as LLM_ENTRIES
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.responder import ResponseRequested
from tests.actors.appraisal.test_decider import ended
from tests.actors.responder.builders import Requested, asked, memory, recalled, with_model
from tests.actors.scenario import Address, ReadPartition
from tests.e2e.models.test_corpora import corpus
from tests.each import each

QUESTION = "When does the ferry to the island leave in the morning?"
ON_TOPIC = "The first ferry to the island leaves at seven in the morning, the next one at nine."
OFF_TOPIC = "Bananas are rich in potassium and ripen faster beside apples in a paper bag."
SAID = next(entry.sample for entry in LLM_ENTRIES if entry.event is LlmCompleted)
EMBEDDERS = [model_of(name) for name in ("auto", "hashed")]
by_embedder = pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda each: each.name)


class Answering:
    """An exchange that a model was asked to answer: the responder's own request, before appraisal."""

    def __init__(self, text: str = QUESTION, *, guarded: bool = True, **settings: Any) -> None:
        responder = with_model(guardrails=guarded)
        responder.hear(asked(text))
        self.request = Requested(responder, "RESPOND")
        self.appraisal = ReadPartition(ACTOR).configure(AppraisalSettings(embedder="hashed", **settings))
        self.appraisal.hear(InputReceived(text=text))
        self.asked_for = self.ask()

    def ask(self) -> str:
        """Deliver the request; return its id."""
        self.appraisal.hear(self.request.event)
        return self.appraisal.state.pending["exchange"].request

    def says(self, words: str, *, request: str | None = None) -> list[Any]:
        """Deliver a model's words; return what they lead to."""
        named = self.asked_for if request is None else request
        return self.appraisal.when(msgspec.structs.replace(SAID, request=named, text=words))


def passes(scores: Scores) -> bool:
    return scores.alignment >= 0.75 and scores.drift <= 0.25


# --- when


def test_an_answer_is_appraised_for_its_loop():
    answering = Answering()
    [found] = answering.says(ON_TOPIC)
    assert isinstance(found, AnswerAppraised)
    assert (found.request, found.loop_id) == (answering.asked_for, "exchange")
    assert found.models == "hashed-1+bias-1"
    assert passes(Scores(found.alignment, found.drift, found.judged))


def test_an_answer_that_nobody_will_judge_is_not_appraised():
    assert Answering(guarded=False).says(ON_TOPIC) == []


@each("words", ["", " \n"])
def test_a_blank_answer_is_none(words: str):
    assert Answering().says(words) == []


def test_words_to_another_request_are_not_the_answer():
    assert Answering().says(ON_TOPIC, request="another") == []
    assert Answering().says(ON_TOPIC, request="") == []


def test_an_answer_that_is_told_of_again_is_appraised_once():
    answering = Answering()
    answering.says(ON_TOPIC)
    assert answering.says(ON_TOPIC) == []


def test_a_rerun_is_appraised_for_its_own_loop():
    answering = Answering()
    answering.says(OFF_TOPIC)
    answering.request.event = msgspec.structs.replace(answering.request.event, loop_id="exchange_r1")
    answering.asked_for = answering.ask()
    [found] = answering.says(ON_TOPIC)
    assert found.loop_id == "exchange_r1"


def test_what_is_kept_of_an_exchange_is_dropped_with_its_end():
    answering = Answering()
    answering.appraisal.hear(ended())
    assert answering.appraisal.state.pending == Map()
    assert answering.says(ON_TOPIC) == []
    answering.appraisal.hear(InputReceived(text=QUESTION))
    assert answering.appraisal.state.pending == Map()


def test_a_request_of_an_exchange_that_is_not_known_is_not_kept():
    answering = Answering()
    answering.appraisal.hear(answering.request.event, Address(exchange="another"))
    assert set(answering.appraisal.state.pending) == {"exchange"}


def test_a_model_that_this_process_does_not_have_is_named():
    assert ACTOR.missing_model is not None
    [found] = Answering().says(ON_TOPIC)
    assert ACTOR.missing_model(found) == ""
    assert ACTOR.missing_model(msgspec.structs.replace(found, models="hashed-1+bias-9")) == "bias-9"
    assert ACTOR.missing_model(msgspec.structs.replace(found, models="llama+bias-1")) == "llama"


# --- what they rest on


@by_embedder
def test_an_answer_on_the_matter_passes_and_another_does_not(embedder: Any):
    talk = f"I travel with my bicycle, heavy luggage and two friends on Sunday.\n{QUESTION}"
    assert passes(scores_of(embedder, QUESTION, talk, talk, ON_TOPIC))
    astray = scores_of(embedder, QUESTION, talk, talk, OFF_TOPIC)
    assert astray.judged
    assert not passes(astray)


@by_embedder
@pytest.mark.parametrize("words", ["Lima.", "Yes, of course!", "42", "I do not know.", "リマです。"])
def test_too_few_words_are_neutral_and_pass(embedder: Any, words: str):
    assert scores_of(embedder, QUESTION, QUESTION, QUESTION, words) == Scores(0.8, 0.2, False)


@by_embedder
def test_a_question_without_content_words_is_neutral(embedder: Any):
    assert scores_of(embedder, "And you?", "And you?", "And you?", OFF_TOPIC) == Scores(0.8, 0.2, False)


@by_embedder
def test_what_the_model_was_given_excuses_what_it_speaks_of(embedder: Any):
    question = (
        "Summarise the attached document about harvest, storage, shipping and prices for the directors of the board"
    )
    given = f"{OFF_TOPIC} Ripe bananas are shipped in cooled containers.\n{question}"
    without = scores_of(embedder, question, question, question, OFF_TOPIC)
    assert scores_of(embedder, question, question, given, OFF_TOPIC).drift < without.drift


def test_lines_around_data_and_labels_of_memories_are_not_read():
    responder = with_model(guardrails=True)
    responder.hear(asked(QUESTION, layers=(Layer(role="document", content="Timetable of the harbour."),)))
    responder.hear(recalled(memory("likes tea", energy=0.8), memory("sea", layer="concept", energy=0.25, id="c:1")))
    event = Requested(responder, "RESPOND").event
    assert isinstance(event, ResponseRequested)
    found = with_request(awaited(QUESTION), "request", event)
    assert [line for line in found.given.splitlines() if line] == [
        "likes tea",
        "sea",
        "Timetable of the harbour.",
        QUESTION,
    ]
    assert found.talk == QUESTION


@pytest.mark.parametrize("scale", [SEMANTIC, LITERAL])
@given(st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_more_agreement_is_never_less_alignment_nor_more_drift(scale: Scale, agreements: Sequence[float]):
    lower, higher = agreements
    assert interpolated(scale.alignment, lower) <= interpolated(scale.alignment, higher)
    assert interpolated(scale.drift, lower) >= interpolated(scale.drift, higher)


texts = st.text(max_size=80) | st.sampled_from([QUESTION, ON_TOPIC, OFF_TOPIC, "\ud800", "x" * 20_000])


@given(question=texts, given=texts, answer=texts)
def test_any_texts_give_numbers_in_range_and_rounded(question: str, given: str, answer: str):
    for embedder in EMBEDDERS:
        scores = scores_of(embedder, question, question, given, answer)
        for number in (scores.alignment, scores.drift):
            assert 0.0 <= number <= 1.0
            assert number == round(number, 6)


# --- biases


@each(
    ("text", "tags"),
    [
        ("Without a doubt it is Lima. Trust me.", ("overconfidence",)),
        ("Everyone knows that it is Lima.", ("absolutism",)),
        ("What a great question! It is Lima.", ("flattery",)),
        ("Perhaps it is Lima, or maybe Cusco; I might be wrong.", ("hedging",)),
        ("Perhaps it is Lima.", ()),
        ("Experts agree: it is Lima.", ("appeal_to_authority",)),
        ("Women are naturally better at that.", ("stereotype",)),
        (
            "There is no doubt that experts agree, without exception.",
            ("absolutism", "appeal_to_authority", "overconfidence"),
        ),
        ("WITHOUT  A\nDOUBT", ("overconfidence",)),
        ("Lima is the capital of Peru.", ()),
        ("", ()),
    ],
)
def test_a_bias_is_found_by_its_phrases(text: str, tags: tuple[str, ...]):
    assert bias_tags_of(text) == tags


def test_the_biases_of_an_answer_are_told_with_its_numbers():
    [found] = Answering().says("What a great question! " + ON_TOPIC)
    assert found.bias_tags == ("flattery",)


# --- over real conversations


Answer = tuple[str, str, str, str]
"""Conversation, talk up to the question, question, answer."""


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    """The answers of public conversations; skips where there are none."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpora: set NEURAXIS_CORPORA to a folder that holds conversations.jsonl")
    found = []
    for line in (folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        turns = row["turns"]
        for place in range(1, len(turns)):
            before, said = turns[place - 1], turns[place]
            if (before["role"], said["role"]) == ("user", "assistant"):
                talk = "\n".join(turn["text"] for turn in turns[max(0, place - 9) : place])
                found.append((row["id"], talk, before["text"], said["text"]))
    return found


@by_embedder
def test_real_answers_pass(answers: list[Answer], embedder: Any):
    passed = [passes(scores_of(embedder, question, talk, talk, answer)) for _, talk, question, answer in answers]
    assert sum(passed) / len(passed) >= 0.95


@by_embedder
def test_most_answers_of_other_talks_fail_where_they_can_be_judged(answers: list[Answer], embedder: Any):
    others = answers[len(answers) // 2 :] + answers[: len(answers) // 2]
    found = [
        scores_of(embedder, question, talk, talk, other[3])
        for (conversation, talk, question, _), other in zip(answers, others, strict=True)
        if other[0] != conversation
    ]
    judged = [scores for scores in found if scores.judged]
    failed = sum(not passes(scores) for scores in judged) / len(judged)
    assert failed >= (0.8 if embedder.semantic else 0.5)
