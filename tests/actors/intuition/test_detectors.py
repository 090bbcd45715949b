"""The learned scorer beside the motifs. What it says of a text is given here; the scorer has tests of its own."""

from collections.abc import Iterator
from types import SimpleNamespace
from unittest import mock

import pytest

from actors.intuition import judging
from schemas.vocabulary.gateway import Layer
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected
from tests.actors.intuition.builders import GATE, document, harmful, intuition, judged

SCORES = {"fishy": 0.8, "fishier": 0.9, "clean": 0.1}


@pytest.fixture(autouse=True)
def scored_by_word() -> Iterator[None]:
    """Let a text's score be that of its first word, 0.8 being the threshold."""
    with mock.patch.multiple(
        judging,
        THRESHOLD=0.8,
        scorer_of=lambda models: SimpleNamespace(name="by-word"),
        score=lambda text, scorer: SCORES.get(text.partition(" ")[0], 0.0),
    ):
        yield


def test_a_score_at_the_threshold_rejects() -> None:
    verdict = judged(intuition(scorer=True), "fishy words")
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.detector, verdict.motif, verdict.similarity, verdict.layer) == ("scorer", "", 0.0, "text")
    assert (verdict.score, verdict.score_threshold, verdict.severity, verdict.model) == (0.8, 0.8, 0.8, "by-word")


def test_a_score_below_the_threshold_passes_and_is_reported() -> None:
    verdict = judged(intuition(scorer=True), "clean words")
    assert verdict == IntuitionPassed(nearest="", similarity=0.0, score=0.1, model="by-word")


@pytest.mark.parametrize(("threshold", "rejected"), [(0.81, False), (0.05, True)])
def test_another_threshold_can_be_set(threshold: float, rejected: bool) -> None:
    verdict = judged(intuition(scorer=True, scorer_threshold=threshold), "fishy words")
    assert isinstance(verdict, IntuitionRejected) is rejected


def test_the_highest_score_of_all_parts_decides() -> None:
    verdict = judged(intuition(scorer=True), "fishy words", document("clean"), document("fishier words"))
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.score, verdict.layer) == (0.9, "document[1]")


def test_the_system_layer_is_not_scored() -> None:
    verdict = judged(intuition(scorer=True), "clean words", Layer(role="system", content="fishier words"))
    assert verdict.score == 0.1


def test_a_motif_is_heard_before_the_scorer_whose_score_is_reported_beside() -> None:
    verdict = judged(intuition(harmful("p-1"), scorer=True), GATE, document("fishier words"))
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.detector, verdict.layer, verdict.severity, verdict.score) == ("motif", "text", 0.9, 0.9)


def test_the_nearest_motif_is_reported_where_the_scorer_rejects() -> None:
    verdict = judged(intuition(harmful("p-1", "fishy things are here"), scorer=True), "fishy things")
    assert isinstance(verdict, IntuitionRejected)
    assert (verdict.detector, verdict.motif) == ("scorer", "p-1")
    assert 0.0 < verdict.similarity < 0.7


def test_the_scorer_can_be_switched_off() -> None:
    verdict = judged(intuition(scorer=False), "fishier words")
    assert verdict == IntuitionPassed(nearest="", similarity=0.0, score=None, model="none")
