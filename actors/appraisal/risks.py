"""What an input would have the system do, by phrases in a fixed order: its risks, its proposed action, its reach.

Plain rules, because a violation ends the exchange and somebody will ask why: ``harm`` is an ask (a question how, an
order to write or to teach) shortly before a harmful act, with nothing that turns against it; ``layer_0`` is a verb of
change before the system's own rules. Phrases are English; the lists are ``risks.json``.

A long text is looked at in pieces: the first, the last, and all between that have the words a risk is made of, since an
ask in the middle of a long text is as good as any. Of more than ``MOST_PIECES`` such pieces the rest is counted.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import compress, count
from typing import NamedTuple

import msgspec

from actors.contract.text.decoding import decoded_of
from actors.contract.text.excerpt import DECODED, excerpt_of
from actors.contract.text.folding import fold, fold_word
from actors.contract.text.tokens import letters_of, split_tokens, tokens_of
from schemas.vocabulary.appraisal import Risks
from schemas.vocabulary.precedents import ProposedAction

PIECE, OVERLAP = 2_048, 1_024
"""Characters of a piece, and those it has of the next one, so that nothing falls between two."""

MOST_PIECES = 64
"""Pieces that are looked at word by word."""

READ_DECODED = 4_096
"""Characters that are looked at of what a disguise is undone to."""

_WORDS = re.compile(r"[^\W\d_]+")
_ASK_REACH = 16
_ALTER_REACH = 6

Phrases = dict[str, tuple[tuple[str, ...], ...]]


class Lists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases of ``risks.json``, by first token and longest first."""

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
    """What an input would have the system do; ``unread`` counts characters that should have been looked at for it."""

    risks: Risks
    proposed_action: ProposedAction
    affects_swarm: bool
    unread: int = 0


@cache
def _lists() -> Lists:
    data = files("actors.appraisal").joinpath("risks.json").read_bytes()
    listed = msgspec.json.decode(data, type=dict[str, tuple[str, ...]])
    return Lists(**{name: _by_first(phrases) for name, phrases in listed.items()})


def _by_first(phrases: Iterable[str]) -> Phrases:
    found: Phrases = {}
    for phrase in sorted(
        {tuple(split_tokens(fold(phrase))) for phrase in phrases}, key=lambda each: (-len(each), each)
    ):
        found[phrase[0]] = (*found.get(phrase[0], ()), phrase)
    return found


def intent_of(text: str) -> Intent:
    """Return what a text would have the system do; a blank one asks for an answer and nothing else."""
    pieces, unread = _pieces(fold(text))
    harm = layer_0 = swarm = False
    opening: Sequence[str] = ()
    for number, (piece, may) in enumerate(pieces):
        if number and not (may.harm > harm or may.layer_0 > layer_0 or may.swarm > swarm):
            continue  # says nothing that those before have not
        tokens: Sequence[str] = tokens_of(text) if len(pieces) == 1 else split_tokens(piece)
        opening = opening if number else tokens
        # What stands where a piece was cut is judged in the one beside it, which has what comes before and after.
        first = _ASK_REACH if number else 0
        last = len(tokens) - (_ASK_REACH if number < len(pieces) - 1 else 0)
        harm = harm or _asks_for_harm(tokens, first, last)
        layer_0 = layer_0 or _alters_core(tokens, first, last)
        swarm = swarm or _found(_lists().swarm, tokens)
    risks = Risks(harm=harm, layer_0=layer_0)
    return Intent(risks, _action(opening, risks), swarm, unread)


def whole_intent_of(text: str) -> Intent:
    """Return what a text would have the system do, also where it says so in a disguise."""
    intent = intent_of(text)
    for decoded in decoded_of(excerpt_of(text, DECODED).text):
        if decoded.worded:
            said = intent_of(decoded.text[:READ_DECODED])
            risks = Risks(harm=intent.risks.harm or said.risks.harm, layer_0=intent.risks.layer_0 or said.risks.layer_0)
            action = said.proposed_action if risks != intent.risks else intent.proposed_action
            intent = Intent(risks, action, intent.affects_swarm or said.affects_swarm, intent.unread)
    return intent


class _May(NamedTuple):
    """What a piece may have in it, by its words."""

    harm: bool = True
    layer_0: bool = True
    swarm: bool = True


_Pieces = list[tuple[str, _May]]


def _pieces(folded: str) -> tuple[_Pieces, int]:
    """Return the pieces of a folded text to look at, the first and the last among them, and what is left out."""
    cut = [folded[place : place + PIECE + OVERLAP] for place in range(0, max(len(folded) - OVERLAP, 1), PIECE)]
    if len(cut) <= 2:
        return [(piece, _May()) for piece in cut], 0
    telling = [(piece, may) for piece in cut[1:-1] if any(may := _may_tell(_words(piece)))]
    unread = PIECE * max(0, len(telling) - MOST_PIECES)
    if unread:
        # Some from everywhere: what comes first must not hide what comes later.
        telling = [telling[(2 * n + 1) * len(telling) // (2 * MOST_PIECES)] for n in range(MOST_PIECES)]
    return [(cut[0], _May()), *telling, (cut[-1], _May())], unread


def _words(folded: str) -> set[str]:
    return set(map(fold_word, set(letters_of(folded))))


def _may_tell(words: set[str]) -> _May:
    """Return what a piece of these words may have in it: all words of a phrase, in whatever order."""
    sought = _sought()
    return _May(
        harm=any(map(words.issuperset, sought.harm)),
        layer_0=not words.isdisjoint(sought.alter) and not words.isdisjoint(sought.core),
        swarm=any(map(words.issuperset, sought.swarm)),
    )


class Sought(msgspec.Struct, frozen=True):
    """The words that a risk is made of: of each phrase, or one of them."""

    harm: tuple[frozenset[str], ...]
    swarm: tuple[frozenset[str], ...]
    alter: frozenset[str]
    core: frozenset[str]


@cache
def _sought() -> Sought:
    def phrases(listed: Phrases) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(_WORDS.findall(" ".join(each))) for group in listed.values() for each in group)

    lists = _lists()
    return Sought(phrases(lists.harm), phrases(lists.swarm), frozenset(lists.alter), frozenset(lists.core))


def _places(phrases: Phrases, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the phrases begin and end, one for each beginning: the longest."""
    for place in compress(count(), map(phrases.__contains__, tokens)):
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        for phrase in phrases[tokens[place]]:
            # Compared by its second word first: texts that are all first words cost little.
            if (len(phrase) == 1 or phrase[1] == following) and tuple(tokens[place : place + len(phrase)]) == phrase:
                yield place, place + len(phrase)
                break


def _found(phrases: Phrases, tokens: Sequence[str]) -> bool:
    return next(_places(phrases, tokens), None) is not None


def _asks_for_harm(tokens: Sequence[str], first: int, last: int) -> bool:
    lists = _lists()
    harms = list(_places(lists.harm, tokens))
    if not harms:
        return False
    asks = sorted(end for _, end in _places(lists.ask, tokens))
    against = [start for start, _ in _places(lists.against, tokens)]
    for start, end in harms:
        asked = _any_within(asks, start - _ASK_REACH, start + 1)
        if first <= start < last and asked and not _any_within(against, start - _ASK_REACH, end + _ASK_REACH // 2 - 1):
            return True
    return False


def _any_within(places: Sequence[int], first: int, last: int) -> bool:
    """Whether one of some ascending places is from ``first`` to ``last``."""
    nearest = bisect_left(places, first)
    return nearest < len(places) and places[nearest] <= last


def _alters_core(tokens: Sequence[str], first: int, last: int) -> bool:
    lists = _lists()
    alters = list(_places(lists.alter, tokens))
    owners = [start for start, _ in _places(lists.owner, tokens)] if alters else []
    for start, end in alters:
        if not first <= start < last or not _any_within(owners, end, end + _ALTER_REACH - 1):
            continue
        reach = tokens[end : end + _ALTER_REACH]
        owned = next(_places(lists.owner, reach), None)
        if owned is not None and _found(lists.core, reach[owned[1] :]) and not _negated(tokens, start):
            return True
    return False


def _negated(tokens: Sequence[str], place: int) -> bool:
    return any(token in {"not", "never", "don't", "cannot", "can't"} for token in tokens[max(0, place - 3) : place])


def _action(tokens: Sequence[str], risks: Risks) -> ProposedAction:
    if risks.harm or risks.layer_0:
        return "withhold"
    lists = _lists()
    place = 0
    while place < len(tokens):
        polite = next(_places(lists.polite, tokens[place : place + 6]), None)
        if polite is not None and polite[0] == 0:
            place += polite[1]
        elif tokens[place] in {",", ".", "!", "\n"}:
            place += 1
        else:
            break
    first = next(_places(lists.act, tokens[place : place + 4]), None)
    return "act" if first is not None and first[0] == 0 else "answer"
