"""What an input asks the system to do: its risks, the action it proposes, and whether it affects all agents (the
swarm).

Phrases are searched for by plain rules, because a violation ends the exchange and somebody will ask why. ``harm`` is a
request (a how-to question, an order to write or to teach) shortly before a harmful act, without words against it.
``layer_0`` is a verb of change before the system's own rules. Phrases are English; ``risks.json`` lists them.

A long text is read in pieces: the first, the last, and those between that contain the words of a risk, since a request
may stand anywhere. If there are more than ``MOST_PIECES`` such pieces, the rest are only counted as unread.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import compress, count
from typing import NamedTuple

import msgspec

from actors.contract.text.decoding import decoded_texts
from actors.contract.text.excerpt import MOST_FOR_DECODING, excerpt_of
from actors.contract.text.folding import fold, fold_word
from actors.contract.text.tokens import letters_of, split_tokens, tokens_of
from schemas.vocabulary.appraisal import Risks
from schemas.vocabulary.precedents import ProposedAction

PIECE, OVERLAP = 2_048, 1_024
"""Characters of a piece, and its overlap with the next, so that no phrase is cut in two."""

MOST_PIECES = 64
"""Largest number of pieces between the first and the last that are read word by word."""

_WORDS = re.compile(r"[^\W\d_]+")
_REQUEST_REACH = 16
"""Most tokens between a request and the harmful act that it asks for."""

_CORE_REACH = 6
"""Most tokens between a verb of change and the rules of the system that it changes."""

Phrases = dict[str, tuple[tuple[str, ...], ...]]
"""First token -> the phrases that begin with it, each as its tokens, the longest first."""


class RiskPhrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases of ``risks.json``, by first token and longest first.

    Attributes:
        ask: Requests: a how-to question, an order to write or to teach.
        harm: Harmful acts.
        against: Words against an act, such as those of prevention.
        alter: Verbs of change.
        core: The system's own rules and safeguards.
        owner: Words that say whose rules are meant: the system's own ("your").
        act: Orders that call for an action, at the beginning of a text.
        polite: Polite words that may come before an order.
        swarm: What affects all agents.
    """

    ask: Phrases
    harm: Phrases
    against: Phrases
    alter: Phrases
    core: Phrases
    owner: Phrases
    act: Phrases
    polite: Phrases
    swarm: Phrases


class Intent(msgspec.Struct, frozen=True):
    """What an input asks the system to do; ``unread`` counts the characters that should have been read and were not."""

    risks: Risks
    proposed_action: ProposedAction
    affects_swarm: bool
    unread: int = 0


@cache
def _lists() -> RiskPhrases:
    data = files(__package__).joinpath("risks.json").read_bytes()
    listed = msgspec.json.decode(data, type=dict[str, tuple[str, ...]])
    return RiskPhrases(**{name: _by_first(phrases) for name, phrases in listed.items()})


def _by_first(phrases: Iterable[str]) -> Phrases:
    found: Phrases = {}
    for phrase in sorted(
        {tuple(split_tokens(fold(phrase))) for phrase in phrases}, key=lambda each: (-len(each), each)
    ):
        found[phrase[0]] = (*found.get(phrase[0], ()), phrase)
    return found


def intent_of(text: str) -> Intent:
    """Return what a text asks the system to do; a blank one asks for an answer only."""
    pieces, unread = _pieces(fold(text))
    harm = layer_0 = swarm = False
    opening: Sequence[str] = ()
    for number, (piece, possible) in enumerate(pieces):
        if number and not (possible.harm > harm or possible.layer_0 > layer_0 or possible.swarm > swarm):
            continue  # can add no risk to those found
        tokens: Sequence[str] = tokens_of(text) if len(pieces) == 1 else split_tokens(piece)
        opening = opening if number else tokens
        # A phrase at the edge of a piece is judged in the neighbouring piece, which holds the words around it.
        first = _REQUEST_REACH if number else 0
        last = len(tokens) - (_REQUEST_REACH if number < len(pieces) - 1 else 0)
        harm = harm or _asks_for_harm(tokens, first, last)
        layer_0 = layer_0 or _alters_core(tokens, first, last)
        swarm = swarm or _found(_lists().swarm, tokens)
    risks = Risks(harm=harm, layer_0=layer_0)
    return Intent(risks, _action(opening, risks), swarm, unread)


def whole_intent_of(text: str) -> Intent:
    """Return what a text asks the system to do, with its decoded texts."""
    intent = intent_of(text)
    for decoded in decoded_texts(excerpt_of(text, MOST_FOR_DECODING).text):
        if decoded.has_words:
            decoded_intent = intent_of(decoded.text)
            risks = Risks(
                harm=intent.risks.harm or decoded_intent.risks.harm,
                layer_0=intent.risks.layer_0 or decoded_intent.risks.layer_0,
            )
            action = decoded_intent.proposed_action if risks != intent.risks else intent.proposed_action
            swarm = intent.affects_swarm or decoded_intent.affects_swarm
            intent = Intent(risks, action, swarm, intent.unread + decoded_intent.unread)
    return intent


class _PossibleRisks(NamedTuple):
    """The risks that a piece may contain, by its words."""

    harm: bool = True
    layer_0: bool = True
    swarm: bool = True


_Pieces = list[tuple[str, _PossibleRisks]]


def _pieces(folded: str) -> tuple[_Pieces, int]:
    """Return the pieces of a folded text to read, the first and the last among them; and the characters left out."""
    cut = [folded[index : index + PIECE + OVERLAP] for index in range(0, max(len(folded) - OVERLAP, 1), PIECE)]
    if len(cut) <= 2:
        return [(piece, _PossibleRisks()) for piece in cut], 0
    relevant = [(piece, possible) for piece in cut[1:-1] if any(possible := _possible_risks(_words(piece)))]
    unread = PIECE * max(0, len(relevant) - MOST_PIECES)
    if unread:
        # Pieces are taken evenly from the whole text. Otherwise an early part could hide a later one.
        relevant = [relevant[(2 * n + 1) * len(relevant) // (2 * MOST_PIECES)] for n in range(MOST_PIECES)]
    return [(cut[0], _PossibleRisks()), *relevant, (cut[-1], _PossibleRisks())], unread


def _words(folded: str) -> set[str]:
    return set(map(fold_word, set(letters_of(folded))))


def _possible_risks(words: set[str]) -> _PossibleRisks:
    """Return the risks that a piece may contain: those with all words of a phrase among its words, in any order."""
    risk_words = _risk_words()
    return _PossibleRisks(
        harm=any(map(words.issuperset, risk_words.harm)),
        layer_0=not words.isdisjoint(risk_words.alter) and not words.isdisjoint(risk_words.core),
        swarm=any(map(words.issuperset, risk_words.swarm)),
    )


class RiskWords(msgspec.Struct, frozen=True):
    """The words that each risk is made of."""

    harm: tuple[frozenset[str], ...]
    swarm: tuple[frozenset[str], ...]
    alter: frozenset[str]
    core: frozenset[str]


@cache
def _risk_words() -> RiskWords:
    def phrases(listed: Phrases) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(_WORDS.findall(" ".join(each))) for group in listed.values() for each in group)

    lists = _lists()
    return RiskWords(phrases(lists.harm), phrases(lists.swarm), frozenset(lists.alter), frozenset(lists.core))


def _occurrences(phrases: Phrases, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where phrases begin and end; of several with the same beginning, the longest."""
    for index in compress(count(), map(phrases.__contains__, tokens)):
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        for phrase in phrases[tokens[index]]:
            # The second word is compared first, so that a text of nothing but first words costs little.
            if (len(phrase) == 1 or phrase[1] == following) and tuple(tokens[index : index + len(phrase)]) == phrase:
                yield index, index + len(phrase)
                break


def _found(phrases: Phrases, tokens: Sequence[str]) -> bool:
    return next(_occurrences(phrases, tokens), None) is not None


def _asks_for_harm(tokens: Sequence[str], first: int, last: int) -> bool:
    """Whether a harmful act is asked for whose phrase begins at token ``first`` or later, before ``last``."""
    lists = _lists()
    harmful = list(_occurrences(lists.harm, tokens))
    if not harmful:
        return False
    asks = sorted(end for _, end in _occurrences(lists.ask, tokens))
    against = [start for start, _ in _occurrences(lists.against, tokens)]
    for start, end in harmful:
        asked = _any_within(asks, start - _REQUEST_REACH, start + 1)
        if (
            first <= start < last
            and asked
            and not _any_within(against, start - _REQUEST_REACH, end + _REQUEST_REACH // 2 - 1)
        ):
            return True
    return False


def _any_within(positions: Sequence[int], first: int, last: int) -> bool:
    """Whether any of the ascending ``positions`` lies between ``first`` and ``last``."""
    nearest = bisect_left(positions, first)
    return nearest < len(positions) and positions[nearest] <= last


def _alters_core(tokens: Sequence[str], first: int, last: int) -> bool:
    """Whether the system's rules are to be changed by a verb at token ``first`` or later, before ``last``."""
    lists = _lists()
    alters = list(_occurrences(lists.alter, tokens))
    owners = [start for start, _ in _occurrences(lists.owner, tokens)] if alters else []
    for start, end in alters:
        if not first <= start < last or not _any_within(owners, end, end + _CORE_REACH - 1):
            continue
        reach = tokens[end : end + _CORE_REACH]
        owner = next(_occurrences(lists.owner, reach), None)
        if owner is not None and _found(lists.core, reach[owner[1] :]) and not _negated(tokens, start):
            return True
    return False


def _negated(tokens: Sequence[str], index: int) -> bool:
    """Whether one of the three tokens before an index negates what begins there."""
    return any(token in {"not", "never", "don't", "cannot", "can't"} for token in tokens[max(0, index - 3) : index])


def _action(tokens: Sequence[str], risks: Risks) -> ProposedAction:
    if risks.harm or risks.layer_0:
        return "withhold"
    lists = _lists()
    index = 0
    while index < len(tokens):
        polite = next(_occurrences(lists.polite, tokens[index : index + 6]), None)
        if polite is not None and polite[0] == 0:
            index += polite[1]
        elif tokens[index] in {",", ".", "!", "\n"}:
            index += 1
        else:
            break
    first = next(_occurrences(lists.act, tokens[index : index + 4]), None)
    return "act" if first is not None and first[0] == 0 else "answer"
