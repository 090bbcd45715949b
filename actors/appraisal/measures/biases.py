"""The biases that an answer's words show, found by phrases (``bias.json``). A heuristic, for English.

A tag is given if its phrases occur often enough: once for most tags, more often for common words such as "perhaps".
Quoted and negated words count like any others, and most biases show in no phrase. So a tag is a reason to look closer,
not a proof.
"""

from functools import cache
from importlib.resources import files

import msgspec

from actors.contract.text.folding import fold
from actors.contract.text.tokens import split_tokens

VERSION = "bias-1"
"""Recorded in the ``models`` of events; a change of phrases that changes any tag needs a new one."""

MOST_READ = 8_000
"""Characters of an answer that are read."""


class _TagPhrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases of a tag, and how often they must occur, all counted together."""

    least: int
    phrases: tuple[str, ...]


class _Phrase(msgspec.Struct, frozen=True):
    tag: str
    words: tuple[str, ...]


class _Lexicon(msgspec.Struct, frozen=True):
    """How often the phrases of each tag must occur, and all phrases by their first word."""

    least: dict[str, int]
    by_first: dict[str, tuple[_Phrase, ...]]


def bias_tags_of(text: str) -> tuple[str, ...]:
    """Return the biases that a text shows, sorted."""
    lexicon = _lexicon()
    tokens = [token for token in split_tokens(fold(text[:MOST_READ])) if not token.isspace()]
    found = dict.fromkeys(lexicon.least, 0)
    for index, token in enumerate(tokens):
        tags = {
            phrase.tag
            for phrase in lexicon.by_first.get(token, ())
            if tuple(tokens[index : index + len(phrase.words)]) == phrase.words
        }
        for tag in tags:
            found[tag] += 1
    return tuple(sorted(tag for tag, count in found.items() if count >= lexicon.least[tag]))


@cache
def _lexicon() -> _Lexicon:
    data = files(__package__).joinpath("bias.json").read_bytes()
    listed = msgspec.json.decode(data, type=dict[str, _TagPhrases])
    by_first: dict[str, tuple[_Phrase, ...]] = {}
    for tag, each in listed.items():
        for text in each.phrases:
            words = tuple(split_tokens(fold(text)))
            by_first[words[0]] = (*by_first.get(words[0], ()), _Phrase(tag, words))
    return _Lexicon({tag: each.least for tag, each in listed.items()}, by_first)
