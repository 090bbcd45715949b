"""The word lists of fact extraction. Pure."""

from functools import cache
from importlib.resources import files

import msgspec


class WordLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists of ``words.json``. Those that begin with ``no`` say what no value, key or object is.

    Attributes:
        no_name: Words that no name begins with ("call me later").
        no_person: Words that are no name after "I'm", though they have a capital ("I'm German").
        no_place: Words that are no place to live in ("I live in fear").
        no_employer: Words that are no employer ("I work at night").
        no_job: Words that are no job ("work as a team").
        no_key: Words that no key of a fact contains ("my point is ...").
        no_value: Words that no value of a fact begins with ("my hope is that ...").
        no_kind: Words that judge a thing, and do not say what it is ("my car is a mess").
        no_object: Words that are no object of an opinion ("I like it").
        no_deed: Verbs after "I like to" that make it a request ("I like to book ...").
        no_allergy: Words that are no allergy in earnest ("allergic to work").
        workplace: Kinds of organisations and places that employ people ("a bank").
        place: Kinds of places that people live in ("a village").
        occupation: Jobs, by their last words.
        kin: People and animals that somebody has.
        thing: Things that somebody has for long.
        site: Places that somebody has ("my office is in Lisbon").
        attribute: What forms ask for ("email"): such facts last.
        diet: Diets, as words for people ("vegan").
        colour: Colours.
        related: Kind of fact -> terms of questions that such a fact helps to answer ("allergy": "food").
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
