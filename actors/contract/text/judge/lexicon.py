"""Classes of words with a similar meaning in instructions to a model: ``override``, ``secret``, ``persona`` and so on.

``lexicon.json`` lists for each class its words (``*`` stands for any ending) and phrases, in a dozen languages. If
several entries match at a position, the longest phrase wins, then the exact word, then the longest stem.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import compress

import msgspec

from actors.contract.text.folding import SPACELESS, fold
from actors.contract.text.tokens import split_tokens

NO_CLASS = -1
"""The class of a word that is in no class."""

_LONGEST_STEM, _SHORTEST_STEM = 24, 2
"""Most and fewest letters of a stem (``*`` in the list) that is looked for at the beginning of a word."""


class Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entries of a class: words separated by spaces, and phrases."""

    words: tuple[str, ...]
    phrases: tuple[str, ...]


class Lexicon(msgspec.Struct, frozen=True, eq=False):
    """The classes by number, and the words and phrases of each.

    ``exact`` and ``stems`` give the number of a word's class, and that of the words that begin with a stem. ``phrases``
    is keyed by first and second token; phrases that share both are sorted longest first.
    """

    classes: tuple[str, ...]
    exact: dict[str, int]
    stems: dict[str, int]
    phrases: dict[str, dict[str, tuple[tuple[tuple[str, ...], int], ...]]]

    def class_of(self, word: str) -> int:
        """Return the class of a folded word, or NO_CLASS."""
        found = self.exact.get(word)
        if found is not None:
            return found
        for length in range(min(len(word), _LONGEST_STEM), _SHORTEST_STEM - 1, -1):
            found = self.stems.get(word[:length])
            if found is not None:
                return found
        return self.class_of(word[:-2]) if word.endswith("'s") else NO_CLASS


def _entries(entries: Entries) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield each entry as its tokens, and whether it is a stem."""
    for word in (word for line in entries.words for word in line.split()):
        if SPACELESS.search(word):
            yield tuple(split_tokens(fold(word))), False
        else:
            yield (fold(word.removesuffix("*")),), word.endswith("*")
    for phrase in entries.phrases:
        yield tuple(split_tokens(fold(phrase))), False


@cache
def lexicon() -> Lexicon:
    """Return the lexicon that ships with the package."""
    data = files("actors.contract.text.judge").joinpath("lexicon.json").read_bytes()
    listed = msgspec.json.decode(data, type=dict[str, Entries])
    exact: dict[str, int] = {}
    stems: dict[str, int] = {}
    phrases: dict[tuple[str, ...], int] = {}
    for number, entries in enumerate(listed.values()):
        for tokens, is_stem in _entries(entries):
            if len(tokens) > 1:
                phrases.setdefault(tokens, number)
            else:
                (stems if is_stem else exact).setdefault(tokens[0], number)
    return Lexicon(tuple(listed), exact, stems, _by_first_two(phrases))


def _by_first_two(phrases: dict[tuple[str, ...], int]) -> dict[str, dict[str, tuple[tuple[tuple[str, ...], int], ...]]]:
    found: dict[str, dict[str, tuple[tuple[tuple[str, ...], int], ...]]] = {}
    for phrase, number in sorted(phrases.items(), key=lambda item: (-len(item[0]), item[0])):
        may_begin = found.setdefault(phrase[0], {})
        may_begin[phrase[1]] = (*may_begin.get(phrase[1], ()), (phrase, number))
    return found


@lru_cache(maxsize=65536)
def _class_of(word: str) -> int:
    return lexicon().class_of(word)


def classify(tokens: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the words and phrases of a text, and the class of each (NO_CLASS for most).

    A phrase of the lexicon becomes a single entry, its tokens joined by spaces.
    """
    phrases = lexicon().phrases
    words: list[str] = []
    classes: list[int] = []
    done = 0
    # Few tokens begin a phrase; the tokens between those are classified in one step.
    may_begin = map(phrases.__contains__, tokens[:-1])
    for start in compress(range(len(tokens)), may_begin):
        candidates = phrases[tokens[start]].get(tokens[start + 1])
        if candidates is None or start < done:
            continue
        found = _phrase_at(candidates, tokens, start)
        if found is not None:
            between = tokens[done:start]
            words += (*between, " ".join(found[0]))
            classes += (*map(_class_of, between), found[1])
            done = start + len(found[0])
    rest = tokens[done:]
    return [*words, *rest], [*classes, *map(_class_of, rest)]


def _phrase_at(
    candidates: Sequence[tuple[tuple[str, ...], int]], tokens: Sequence[str], start: int
) -> tuple[tuple[str, ...], int] | None:
    for phrase, number in candidates:
        if tuple(tokens[start : start + len(phrase)]) == phrase:
            return phrase, number
    return None
