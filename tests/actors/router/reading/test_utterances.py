"""Everyday utterances, labelled by reading: what the default weights make of them, misses included.

``utterances.json`` says how they were labelled. ``known_misses.json`` lists every one on which the router disagrees; a
change that alters the list is a change of behaviour, to be judged and written down.
"""

import json
from pathlib import Path
from typing import Any

from schemas.vocabulary.memory import Familiarity
from tests.actors.router.builders import ground, route
from tests.each import each

HERE = Path(__file__).parent
LABELLED: dict[str, Any] = json.loads((HERE / "utterances.json").read_text(encoding="utf-8"))
UTTERANCES: list[dict[str, str]] = LABELLED["utterances"]
KNOWN_MISSES: list[dict[str, str]] = json.loads((HERE / "known_misses.json").read_text(encoding="utf-8"))
FLOOR = 215
"""How many of the labels the router must agree with."""


def ground_named(name: str) -> Familiarity:
    known = LABELLED["contexts"][name]
    return ground(known["turns"], known["gists"], known["facts"], is_new_topic=known["first"])


def selected_mode(utterance: dict[str, str]) -> str:
    return route(utterance["text"], ground_named(utterance["context"])).selected_mode


def test_there_are_two_hundred_labels_and_more_without_repetition():
    assert len({(each["text"], each["context"]) for each in UTTERANCES}) == len(UTTERANCES) >= 200


def test_every_context_has_the_warmth_its_name_promises():
    warmth = {name: route("x", ground_named(name)).signals.context_warmth for name in LABELLED["contexts"]}
    assert warmth == {"cold": 0.0, "young": 0.3, "moderate": 0.44, "warm": 0.84}


def test_the_router_agrees_with_no_fewer_labels_than_the_floor():
    assert sum(selected_mode(each) == each["expected"] for each in UTTERANCES) >= FLOOR


def test_the_misses_are_the_known_ones():
    misses = [{**each, "selected": mode} for each in UTTERANCES if (mode := selected_mode(each)) != each["expected"]]
    assert misses == KNOWN_MISSES


@each("context", ["moderate", "warm"])
def test_with_some_context_nothing_that_asks_for_more_is_merely_acknowledged(context: str):
    wrong = [
        each["text"]
        for each in UTTERANCES
        if each["context"] == context and each["expected"] != "ACKNOWLEDGE" and selected_mode(each) == "ACKNOWLEDGE"
    ]
    assert wrong == []
