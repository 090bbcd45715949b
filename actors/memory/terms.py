"""Concepts made from the terms of a text, and similarity by terms where there is no embedding."""

from collections.abc import Collection
from functools import cache
from importlib.resources import files
from math import sqrt

import msgspec

from actors.contract.text.terms import terms_of

DECIMALS = 6


class WordLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists of ``words.json``. Those that begin with ``no`` say what no value, key or object is.

    Attributes:
        no_name: What a name does not begin with ("call me later").
        no_person: What is no name after "I'm", though it has a capital ("I'm German").
        no_place: What nobody lives in ("I live in fear").
        no_employer: What nobody is employed by ("I work at night").
        no_job: What is no job ("work as a team").
        no_key: What is in no key of a fact ("my point is ...").
        no_value: What a fact's value does not begin with ("my hope is that ...").
        no_kind: What says how somebody finds a thing, not what it is ("my car is a mess").
        no_object: What an opinion is not about ("I like it").
        no_deed: What somebody who "likes to" do it only asks for ("I like to book ...").
        no_allergy: What nobody is allergic to in earnest.
        workplace: Kinds of organisations and places that employ people ("a bank").
        place: Kinds of places that people live in ("a village").
        occupation: Jobs, by their last words.
        kin: People and animals that somebody has.
        thing: Things that somebody has for long.
        site: Places that somebody has ("my office is in Lisbon").
        attribute: What is asked for in forms: what is so of somebody lasts.
        diet: What people are who eat only some things.
        colour: Colours.
        related: What facts of a kind bear on, as terms ("allergy": "food").
        particle: Small words within a name ("van").
        joining: Small words within the name of a place or an organisation ("of").
        article: What is left out at the beginning of a key.
    """

    no_name: frozenset[str]
    no_person: frozenset[str]
    no_place: frozenset[str]
    no_employer: frozenset[str]
    no_job: frozenset[str]
    no_key: frozenset[str]
    no_value: frozenset[str]
    no_kind: frozenset[str]
    no_object: frozenset[str]
    no_deed: frozenset[str]
    no_allergy: frozenset[str]
    workplace: frozenset[str]
    place: frozenset[str]
    occupation: frozenset[str]
    kin: frozenset[str]
    thing: frozenset[str]
    site: frozenset[str]
    attribute: frozenset[str]
    diet: frozenset[str]
    colour: frozenset[str]
    related: dict[str, frozenset[str]]
    particle: frozenset[str]
    joining: frozenset[str]
    article: frozenset[str]


@cache
def word_lists() -> WordLists:
    """Return the lists that ship with the package."""
    return msgspec.json.decode(files("actors.memory").joinpath("words.json").read_bytes(), type=WordLists)


def concepts_in(text: str, most: int) -> tuple[str, ...]:
    """Return the first terms of a text that are words, at most ``most``."""
    return tuple(term for term in terms_of(text) if not term[0].isdigit())[:most]


def overlap(terms: Collection[str], others: Collection[str]) -> float:
    """Return the cosine of two sets of terms, in [0, 1]."""
    shared = len({*terms}.intersection(others))
    return round(shared / sqrt(len(terms) * len(others)), DECIMALS) if shared else 0.0
