"""What an input would have the system do, by phrases in a fixed order: its risks, its proposed action, its reach.

Plain rules, because a violation ends the exchange and somebody will ask why: ``harm`` is an ask (a question how, an
order to write or to teach) shortly before a harmful act, with nothing that turns against it; ``layer_0`` is a verb of
change before the system's own rules. Phrases are English; the lists are ``risks.json``.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from schemas.reading.folding import fold
from schemas.reading.tokens import split_tokens
from schemas.vocabulary.appraisal import Risks
from schemas.vocabulary.precedents import ProposedAction

READ_TOKENS = 400
"""Tokens looked at from either end of a text."""

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
    """What an input would have the system do."""

    risks: Risks
    proposed_action: ProposedAction
    affects_swarm: bool


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
    tokens = split_tokens(fold(text[: READ_TOKENS * 8]))[:READ_TOKENS]
    if len(text) > READ_TOKENS * 8:
        tokens += split_tokens(fold(text[-READ_TOKENS * 8 :]))[-READ_TOKENS:]
    risks = Risks(harm=_asks_for_harm(tokens), layer_0=_alters_core(tokens))
    return Intent(risks, _action(tokens, risks), _found(_lists().swarm, tokens))


def _places(phrases: Phrases, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the phrases begin and end, one for each beginning: the longest."""
    for place in [place for place, token in enumerate(tokens) if token in phrases]:
        for phrase in phrases[tokens[place]]:
            if tuple(tokens[place : place + len(phrase)]) == phrase:
                yield place, place + len(phrase)
                break


def _found(phrases: Phrases, tokens: Sequence[str]) -> bool:
    return next(_places(phrases, tokens), None) is not None


def _asks_for_harm(tokens: Sequence[str]) -> bool:
    lists = _lists()
    asks = [end for _, end in _places(lists.ask, tokens)]
    for start, end in _places(lists.harm, tokens):
        before = [ask for ask in asks if start - _ASK_REACH <= ask <= start + 1]
        if before and not _found(lists.against, tokens[max(0, start - _ASK_REACH) : end + _ASK_REACH // 2]):
            return True
    return False


def _alters_core(tokens: Sequence[str]) -> bool:
    lists = _lists()
    for start, end in _places(lists.alter, tokens):
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
