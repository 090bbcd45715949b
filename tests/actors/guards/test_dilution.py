"""What stands around an attack, how often it is repeated and how long the text is lower nothing that is seen of it."""

import random

import msgspec
import pytest

from actors.appraisal.measures.trust import ROLE_CONFUSION, trust_of
from actors.intuition.scorer import THRESHOLD, score
from schemas.vocabulary.reflex import ReflexBlocked
from tests.actors.appraisal.test_trust import TRIPS
from tests.actors.reflex.judging import verdict
from tests.e2e.models.test_corpora import corpus
from tests.each import each

CALM = (
    "Thank you for the quick answer, it helped a lot. ",
    "The ferry leaves at nine in summer and at ten in winter. ",
    "We measured the north wall again last week. ",
    "My sister likes the blue one best, and so do I. ",
)
LONG = "".join(CALM) * 60

DILUTED = {
    "four sentences on either side": lambda text: f"{''.join(CALM)}{text} {''.join(CALM)}",
    "fifty times": lambda text: "\n".join([text] * 50),
    "20 KB around": lambda text: f"{LONG}\n{text}\n{LONG}",
    "in a document of JSON": lambda text: msgspec.json.encode({"title": CALM[1], "note": text, "by": CALM[2]}).decode(),
}


@each("how", DILUTED)
@each("case", TRIPS)
def test_an_order_trips_whatever_stands_around_it(case: str, how: str) -> None:
    assert trust_of("text", DILUTED[how](TRIPS[case])).falsehood > ROLE_CONFUSION


@pytest.fixture(scope="module")
def seen() -> list[str]:
    """Public attacks that are seen as they stand; skips where there are none."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpora: set NEURAXIS_CORPORA to a folder that holds prompts.jsonl")
    rows = [msgspec.json.decode(line) for line in (folder / "prompts.jsonl").read_bytes().splitlines()]
    attacks = [row["text"] for row in rows if row["label"] == "attack" and len(row["text"]) < 2_000]
    drawn = random.Random(5).sample(sorted(set(attacks)), 120)
    return [text for text in drawn if _is_seen(text)]


@each("how", DILUTED)
def test_of_public_attacks_that_are_seen_bare_as_many_are_seen_diluted(seen: list[str], how: str) -> None:
    assert len(seen) > 40
    assert sum(_is_seen(DILUTED[how](text)) for text in seen) >= 0.95 * len(seen)


def _is_seen(text: str) -> bool:
    if score(text) >= THRESHOLD or trust_of("text", text).falsehood > ROLE_CONFUSION:
        return True
    return isinstance(verdict(text, profile="standard"), ReflexBlocked)
