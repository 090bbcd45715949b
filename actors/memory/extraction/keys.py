"""Keys of facts: the fixed keys of facts about a person, and the normal form of any key. Pure."""

import re
from collections.abc import Mapping

from actors.contract.text.folding import fold
from actors.contract.text.terms import MOST_READ
from actors.memory.extraction.word_lists import word_lists

KEY_CHARACTERS = 60
"""Most characters of a key."""

NAME, HOME, JOB, EMPLOYER, ORIGIN, AGE, DIET = "name", "home", "job", "employer", "origin", "age", "diet"
LANGUAGES, SPOUSE, BIRTHDAY, SCHOOL, CAR = "languages", "spouse", "birthday", "school", "car"
"""The fixed keys, besides those made of a person's own words."""

OPINION, ALLERGY, EATING, DRINKING, NOTE = "opinion of", "allergy to", "eating", "drinking", "note about"
"""The prefixes of keys of opinions, allergies, diets, and notes."""

ASKED_AS: Mapping[str, tuple[str, ...]] = {
    NAME: ("name", "called", "call"),
    HOME: ("home", "live", "living", "city", "town", "address"),
    JOB: ("job", "work", "profession", "occupation"),
    EMPLOYER: ("employer", "work", "company", "office"),
    AGE: ("age",),
    ORIGIN: ("origin", "hometown"),
}
"""Key -> the terms that ask for it; any of them counts as the key itself."""


def key_of(text: str) -> str:
    """Return a fact's key in normal form: lower case, single spaces, no leading articles; "" for none."""
    words = re.findall(r"[\w'-]+", fold(text[:MOST_READ]))
    while words and words[0] in word_lists().article:
        words = words[1:]
    return " ".join(words)[:KEY_CHARACTERS].strip()


def head_of(key: str) -> str:
    """Return the word that a key is about: its last word."""
    return key.rpartition(" ")[2]


def list_key(prefix: str, what: str) -> str:
    """Return the key of one of several facts of a kind ("opinion of jazz")."""
    return f"{prefix} {what}"[:KEY_CHARACTERS].strip()
