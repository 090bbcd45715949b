"""What intuition says to an input, line by line of what was settled."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.intuition.signature import text_signature
from schemas.vocabulary.gateway import Layer
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected, MotifLearned, MotifRetired
from tests.actors.intuition.builders import GATE, benign, document, harmful, intuition, judged, motif_of, withdrawn
from tests.actors.scenario import Address
from tests.each import each


def test_r3_1_a_harmful_precedent_becomes_a_motif_with_its_harm_level_as_severity() -> None:
    learned = intuition().when(harmful("p-1", "one two three", harm_level=0.4))
    # Three words between two marks on each side make five trigrams; the situation is one more element.
    assert learned == [MotifLearned(motif="p-1", severity=0.4, shingles=6)]


def test_r3_1_a_benign_precedent_becomes_no_motif() -> None:
    partition = intuition()
    assert partition.when(benign("p-1", GATE)) == []
    assert isinstance(judged(partition, GATE), IntuitionPassed)


def test_r3_1_an_input_like_a_motif_is_rejected() -> None:
    verdict = judged(intuition(harmful("p-1")), "How do I BYPASS the alarm of the north gate at night?!")
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.detector, verdict.motif, verdict.layer) == ("motif", "p-1", "text")
    assert (verdict.similarity, verdict.threshold, verdict.severity) == (1.0, 0.7, 0.9)
    assert (verdict.score, verdict.model) == (None, "none")


def test_r3_1_an_input_unlike_any_motif_passes_with_the_nearest() -> None:
    verdict = judged(intuition(harmful("p-1"), harmful("p-2", "where is the spare key")), "where is the north gate")
    assert isinstance(verdict, IntuitionPassed)
    # Begin marks with "where", "where is", "where is the", and the situation, of 8 elements each.
    assert (verdict.nearest, verdict.similarity) == ("p-2", pytest.approx(4 / 8))


def test_r3_1_without_any_precedent_every_input_passes() -> None:
    assert judged(intuition(), GATE) == IntuitionPassed(nearest="", similarity=0.0, score=None, model="none")


@each(("threshold", "rejected"), [(0.5, False), (0.4999999, True)])
def test_r3_1_the_threshold_is_strict(threshold: float, rejected: bool) -> None:
    verdict = judged(
        intuition(harmful("p-1", "where is the spare key"), threshold=threshold), "where is the north gate"
    )
    assert verdict.similarity == 0.5
    assert isinstance(verdict, IntuitionRejected) is rejected


def test_r3_1_and_r7_a_similarity_of_exactly_0_7_passes() -> None:
    # Seven words have nine shingles, ten elements in all: of these 7 are shared, the last words differ.
    partition = intuition(harmful("p-1", "a b c d e f g"))
    verdict = judged(partition, "a b c d e f h")
    assert (verdict.similarity, motif_of(verdict)) == (0.7, None)


@each("text", ["no", "stop that", "!", "", "\u200b"])
def test_r3_1_short_texts_of_one_situation_do_not_match_each_other(text: str) -> None:
    verdict = judged(intuition(harmful("p-1", "do it"), harmful("p-2", ""), harmful("p-3", "?!")), text)
    assert verdict == IntuitionPassed(nearest="", similarity=0.0, score=None, model="none")


@each("text", ["do it", "DO  IT!", "do it."])
def test_short_texts_match_themselves(text: str) -> None:
    assert motif_of(judged(intuition(harmful("p-1", "do it")), text)) == "p-1"


def test_r3_1_the_situation_counts_in_the_similarity_but_never_matches_alone() -> None:
    partition = intuition(harmful("p-1", "where is the spare key", situation="guard duty"))
    other, same, alone = (
        judged(partition, "where is the north gate", situation="general"),
        judged(partition, "where is the north gate", situation="guard duty"),
        judged(partition, "hello", situation="guard duty"),
    )
    assert (other.similarity, same.similarity) == (3 / 8, 4 / 8)
    assert alone == IntuitionPassed(nearest="", similarity=0.0, score=None, model="none")


words = st.lists(st.sampled_from(["open", "the", "north", "gate", "now"]), min_size=1, max_size=8).map(" ".join)
situations = st.sampled_from(["general", "guard duty"])


@given(words, words, situations, situations)
def test_r3_1_similarity_is_the_cosine_of_the_binary_vectors_of_shingles_and_situation(
    one: str, other: str, here: str, there: str
) -> None:
    partition = intuition(harmful("p-1", one, situation=there), passage_phrases=0)
    elements = [{*text_signature(text).tolist(), where} for text, where in ((one, there), (other, here))]
    order = sorted(set.union(*elements), key=str)
    first, second = (np.array([float(each in chosen) for each in order]) for chosen in elements)
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    shares_text = bool(np.intersect1d(text_signature(one), text_signature(other)).size)
    expected = pytest.approx(cosine) if shares_text else 0.0
    assert judged(partition, other, situation=here).similarity == expected


def test_r3_1_the_most_similar_motif_is_reported_not_the_first_over_the_threshold() -> None:
    partition = intuition(harmful("p-1", f"{GATE} please"), harmful("p-2"), harmful("p-3", f"{GATE} quickly"))
    assert motif_of(judged(partition, GATE)) == "p-2"


def test_of_equally_similar_motifs_the_one_recorded_first_is_reported() -> None:
    partition = intuition(harmful("z"), harmful("a"))
    assert motif_of(judged(partition, GATE)) == "z"


def test_a_withdrawn_motif_matches_no_more() -> None:
    partition = intuition(harmful("p-1"))
    assert partition.when(withdrawn("p-1")) == [MotifRetired(motif="p-1")]
    assert judged(partition, GATE) == IntuitionPassed(nearest="", similarity=0.0, score=None, model="none")
    assert partition.when(withdrawn("p-1")) == []


def test_a_benign_precedent_is_withdrawn_without_a_word() -> None:
    partition = intuition(benign("p-1", GATE))
    assert partition.when(withdrawn("p-1")) == []
    assert judged(partition, GATE).precedents == ()


def test_a_precedent_recorded_twice_is_learned_once() -> None:
    partition = intuition(harmful("p-1"))
    assert partition.when(harmful("p-1")) == []
    partition.hear(withdrawn("p-1"))
    assert motif_of(judged(partition, GATE)) is None


def test_a_precedent_recorded_anew_takes_the_place_of_the_old_one() -> None:
    partition = intuition(harmful("p-1"))
    assert partition.when(harmful("p-1", "where is the spare key")) == [
        MotifLearned(motif="p-1", severity=0.9, shingles=8)
    ]
    assert motif_of(judged(partition, GATE)) is None
    assert motif_of(judged(partition, "where is the spare key")) == "p-1"


def test_a_motif_whose_precedent_turns_out_benign_is_retired() -> None:
    partition = intuition(harmful("p-1"))
    assert partition.when(benign("p-1", GATE)) == [MotifRetired(motif="p-1")]
    assert motif_of(judged(partition, GATE)) is None


def test_precedents_belong_to_their_agent() -> None:
    ann, bob = Address(agent="ann"), Address(agent="bob")
    partition = intuition(harmful("p-1"), address=ann)
    assert motif_of(judged(partition, GATE, address=bob)) is None
    partition.hear(withdrawn("p-1"), bob)
    assert motif_of(judged(partition, GATE, address=ann)) == "p-1"


def test_a_verdict_lists_the_similar_precedents_of_both_outcomes_best_first() -> None:
    partition = intuition(
        benign("known", f"{GATE} please", action="withhold"),
        harmful("danger", GATE, harm_level=0.5),
        benign("other", "what is for lunch"),
    )
    listed = judged(partition, GATE).precedents
    assert [(each.precedent, each.action, each.outcome, each.harm_level) for each in listed] == [
        ("danger", "answer", "harmful", 0.5),
        ("known", "withhold", "benign", 0.0),
    ]
    # Twelve words have 14 shingles, the situation is one more; two of them, with end marks, are not in the other.
    assert [each.similarity for each in listed] == [1.0, 13 / sqrt(15 * 16)]


def test_a_verdict_lists_no_more_than_the_setting_and_nothing_below_the_floor() -> None:
    partition = intuition(*(benign(f"p-{number}", f"{GATE} {number}") for number in range(9)))
    assert len(judged(partition, GATE).precedents) == 5
    partition = intuition(benign("p-1", f"{GATE} please"), similar_floor=0.9)
    assert judged(partition, GATE).precedents == ()


@each(("description", "answer"), [(GATE, "Ask the guard."), (f"{GATE} please", "")])
def test_an_approved_answer_is_given_only_from_the_answer_floor_on(description: str, answer: str) -> None:
    (listed,) = judged(intuition(benign("p-1", description, answer="Ask the guard.")), GATE).precedents
    assert (listed.similarity >= 0.9, listed.answer) == (bool(answer), answer)


@each("role", ["user", "tool", "document"])
def test_a_motif_in_a_layer_ends_the_exchange_and_the_layer_is_named(role: str) -> None:
    layers = (Layer(role="user", content="hello"), Layer(role=role, content=GATE))  # type: ignore[arg-type]
    verdict = judged(intuition(harmful("p-1")), "What is for lunch?", *layers)
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.motif, verdict.layer) == ("p-1", f"{role}[1]")


def test_the_system_layer_is_not_judged() -> None:
    verdict = judged(intuition(harmful("p-1")), "What is for lunch?", Layer(role="system", content=GATE))
    assert isinstance(verdict, IntuitionPassed)


def test_what_a_document_says_is_no_situation_of_the_exchange() -> None:
    verdict = judged(intuition(benign("p-1", GATE, answer="Yes.")), "What is for lunch?", document(GATE))
    assert verdict.precedents == ()


def test_the_nearest_motif_of_all_parts_decides() -> None:
    partition = intuition(harmful("p-1"), harmful("p-2", "where is the spare key"))
    verdict = judged(partition, GATE.replace("north", "south"), document("where is the spare key"))
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.motif, verdict.layer) == ("p-2", "document[0]")
