"""Recall: the memories of all layers that a cue recalls, each with an energy in [0, 1]. Pure; exact on any machine.

========  =========================================================================================
layer     energy
========  =========================================================================================
turn      cosine of the embeddings, the session's own only
gist      the same; an exchange that is still a turn is not listed again
episode   the same, times 0.85 to 1 by its salience; nor is one that is still a turn or a gist
fact      terms: half by the share of the cue's that the fact has or bears on, half by the share of its key asked for;
          or, where that is more, the cosine with the exchange that it was told in; half where all are asked for
concept   named in the cue: its confidence, times s / (1 + s) of its decayed strength s
drift     the latest thought on a concept while idle, a gist whichever session asks: overlap of terms; two at most
========  =========================================================================================

Overlap of terms replaces a lower cosine in two cases: where no embedding can be compared, and where the terms of the
cue are not those of its embedding. Episodes are then searched among those most similar, and among those of the concepts
that the cue names.

The energy is multiplied by the weight that reviews gave the memory (``weights``). Then the strongest are taken: first
statements of a person, then echoes, in which the person asked and the agent answered. Of memories with the same content
one is taken; an exchange that says no more than a fact counts as that fact.
"""

from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import NamedTuple

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.agent_memory import AgentMemory
from actors.memory.extraction.keys import ASKED_AS, NAME
from actors.memory.layers.concepts import neighbours
from actors.memory.layers.episodes import Episode, weight_of
from actors.memory.layers.facts import ASKED_FOR_ALL, ToldFact, current_facts, energy_of, stale_exchanges, text_of
from actors.memory.layers.gist import persons_words, tells_nothing, tokens_of
from actors.memory.layers.index import Near
from actors.memory.layers.session import Session
from actors.memory.layers.thoughts import DRIFT, recallable
from actors.memory.layers.vectors import cosines_of
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS, overlap
from actors.memory.wandering import strength_in
from actors.memory.weights import weighted_energy
from schemas.vocabulary.memory import NO_LONGER_SO, Layer, Recollection

_LAYERS: tuple[Layer, ...] = ("turn", "gist", "fact", "episode", "concept")
"""The order of layers among equally strong memories."""

_OF_EXCHANGES = frozenset(("turn", "gist", "episode"))
_EXCHANGE = "exchange:"

_CANDIDATES = 4
"""Episodes examined for their terms or weights, for each one that may be recalled."""

_FURTHEST = 512
"""Most episodes that are examined to find statements, if the same question was asked many times."""

_NAMING = (*ASKED_AS[NAME], "named")
"""Words that only say that something is a name."""

_NEIGHBOURS_SHOWN = 3


class Cue(msgspec.Struct, frozen=True):
    """What memories are searched with.

    ``embedding`` is empty for none; ``model`` is the model that made it. ``other_words``: the terms are not those of
    the embedding, so they count in addition. ``asks`` are further terms, for facts that are asked for without being
    named. ``asks_for_all``: every fact is asked for.
    """

    terms: tuple[str, ...]
    model: str = ""
    embedding: bytes = b""
    other_words: bool = False
    asks: tuple[str, ...] = ()
    asks_for_all: bool = False


class Found(msgspec.Struct, frozen=True):
    """The recalled memories, strongest first, and the highest energy of any memory, recalled or not."""

    recollections: tuple[Recollection, ...]
    best: float


class Memory(NamedTuple):
    """A memory with its energy; ``number`` identifies it within its ``kind``, which is its layer by default.

    ``says`` is its content for comparing with others; "" if no other memory has the same. For a fact it is the number
    of the exchange that tells only this fact, if there is one.

    The ``text`` of a concept is only its term. The full line is made once the concept is recalled, because few of the
    concepts that a cue names are.
    """

    energy: float
    layer: Layer
    number: int
    text: str
    kind: str = ""
    says: str = ""
    echo: bool = False

    @property
    def named(self) -> str:
        """The prefix of its id."""
        return self.kind or self.layer


def recall(mind: AgentMemory, session: Session, cue: Cue, now_ns: int, settings: MemorySettings) -> Found:
    """Return the memories that a cue recalls in a session at a time."""
    gists = session.fresh_gists(now_ns, settings)
    turns = {turn.number: turn.text for turn in session.turns}
    stale = stale_exchanges(mind.facts)
    recent = {gist.number: gist.text for gist in gists if gist.number not in turns}
    found = [
        *_own(mind, cue, "turn", turns, stale),
        *_own(mind, cue, "gist", recent, stale),
        *_episodes(mind, cue, frozenset((*turns, *recent)), stale, settings),
        *_facts(mind, cue, settings),
        *_concepts(mind, cue, now_ns, settings),
        *_thoughts(mind, cue, now_ns, settings),
    ]
    best = max((memory.energy for memory in found), default=0.0)
    return Found(strongest(found, mind, settings), best)


def strongest(found: Iterable[Memory], mind: AgentMemory, settings: MemorySettings) -> tuple[Recollection, ...]:
    """Return the recalled memories: those with at least the minimum energy, no two with the same content.

    Statements come before echoes, then the strongest by weight, among equals the latest.
    """
    awake = [
        memory._replace(energy=weighted_energy(memory.energy, mind, memory.named, memory.number, settings))
        for memory in found
        if memory.energy >= settings.floor and memory.energy > 0.0
    ]
    awake.sort(key=lambda memory: (memory.echo, -memory.energy, _LAYERS.index(memory.layer), -memory.number))
    said: set[str] = {memory.says for memory in awake if memory.layer == "fact"}
    once = []
    for memory in awake:
        if memory.layer != "fact" and memory.says:
            if memory.says in said or _named_exchange(memory) in said:
                continue
            said.add(memory.says)
        once.append(memory)
    return tuple(_recollection(memory, mind) for memory in once[: settings.recollections])


def _recollection(memory: Memory, mind: AgentMemory) -> Recollection:
    text = _concept_text(memory.text, mind) if memory.layer == "concept" else memory.text
    return Recollection(
        id=f"{memory.named}:{memory.number}",
        layer=memory.layer,
        text=text,
        energy=memory.energy,
        tokens=tokens_of(text),
        echo=memory.echo,
    )


def _exchange(energy: float, layer: Layer, number: int, text: str, stale: frozenset[int]) -> Memory:
    is_stale = number in stale
    shown = f"{text}{NO_LONGER_SO}" if is_stale else text
    return Memory(energy, layer, number, shown, says=persons_words(text), echo=is_stale or tells_nothing(text))


def _named_exchange(memory: Memory) -> str:
    return f"{_EXCHANGE}{memory.number}" if memory.layer in _OF_EXCHANGES and not memory.kind else ""


def _concept_text(term: str, mind: AgentMemory) -> str:
    """Return a concept as one line: its term, and the terms that it occurred with most often."""
    others = neighbours(term, mind.concepts, mind.episodes.kept, _NEIGHBOURS_SHOWN)
    return f"{term} (with {', '.join(others)})" if others else term


def _own(mind: AgentMemory, cue: Cue, layer: Layer, texts: dict[int, str], stale: frozenset[int]) -> Iterator[Memory]:
    """Yield a session's own memories; their embeddings are those of their episodes, if these are still kept."""
    embeddings = [_comparable(mind.episodes.kept.get(number), cue) for number in texts]
    similar = cosines_of(cue.embedding, embeddings) if cue.embedding else [0.0] * len(texts)
    for (number, text), embedding, cosine in zip(texts.items(), embeddings, similar, strict=True):
        words = overlap(cue.terms, terms_of(text)) if cue.other_words or not embedding else 0.0
        yield _exchange(max(cosine, words), layer, number, text, stale)


def _comparable(episode: Episode | None, cue: Cue) -> bytes:
    return episode.embedding if episode is not None and cue.embedding and episode.model == cue.model else b""


def _episodes(
    mind: AgentMemory, cue: Cue, without: frozenset[int], stale: frozenset[int], settings: MemorySettings
) -> Iterator[Memory]:
    by_words = cue.other_words or not cue.embedding
    most = settings.recollections * (_CANDIDATES if by_words or mind.weights else 1)
    energies = {near.number: near.energy for near in _nearest(mind, cue, without, most, settings)}
    if by_words:
        named = (mind.concepts[term].episodes for term in cue.terms if term in mind.concepts)
        for number in {number for numbers in named for number in numbers} - without:
            energies.setdefault(number, 0.0)
    for number, energy in energies.items():
        episode = mind.episodes.kept[number]
        words = overlap(cue.terms, terms_of(episode.text)) * weight_of(episode) if by_words else 0.0
        yield _exchange(max(energy, round(words, DECIMALS)), "episode", number, episode.text, stale)


def _nearest(mind: AgentMemory, cue: Cue, without: frozenset[int], most: int, settings: MemorySettings) -> list[Near]:
    """Return the episodes nearest to a cue: enough of them that repetitions and echoes do not hide statements."""
    while True:
        near = mind.episodes.nearest(cue.model, cue.embedding, most, without)
        texts = (mind.episodes.kept[each.number].text for each in near)
        statements = {persons_words(text) for text in texts if not tells_nothing(text)}
        if len(near) < most or most >= _FURTHEST or len(statements) >= settings.recollections:
            return near
        if near[-1].energy < settings.floor:
            return near
        most *= _CANDIDATES


def _facts(mind: AgentMemory, cue: Cue, settings: MemorySettings) -> Iterator[Memory]:
    sought = frozenset((*cue.terms, *cue.asks))
    known = list(current_facts(mind.facts))
    told_in = [mind.episodes.kept.get(fact.exchanges[-1]) if fact.exchanges else None for _, fact in known]
    embeddings = [_comparable(episode, cue) for episode in told_in]
    similar = cosines_of(cue.embedding, embeddings) if cue.embedding else [0.0] * len(known)
    for (key, fact), episode, cosine in zip(known, told_in, similar, strict=True):
        asked = ASKED_FOR_ALL if cue.asks_for_all else 0.0
        energy = max(energy_of(key, fact, sought), cosine, asked)
        if energy:
            is_awake = energy >= settings.floor
            says_no_more = is_awake and episode is not None and _says_no_more(episode.text, fact)
            says = f"{_EXCHANGE}{fact.exchanges[-1]}" if says_no_more else ""
            yield Memory(energy, "fact", fact.number, text_of(key, fact), says=says)


def _says_no_more(text: str, fact: ToldFact) -> bool:
    """Whether an exchange only tells this fact."""
    return {*terms_of(persons_words(text))}.issubset((*fact.terms, *_NAMING))


def _concepts(mind: AgentMemory, cue: Cue, now_ns: int, settings: MemorySettings) -> Iterator[Memory]:
    for term in cue.terms:
        concept = mind.concepts.get(term)
        if concept is not None:
            strength = strength_in(mind, term, now_ns, settings)
            energy = round(concept.confidence * strength / (1.0 + strength), DECIMALS)
            yield Memory(energy, "concept", concept.number, term, echo=True)


def _thoughts(mind: AgentMemory, cue: Cue, now_ns: int, settings: MemorySettings) -> Iterator[Memory]:
    # The latest thought on each concept, and only a few: an agent that was idle long has many, and they would hide the
    # rest.
    latest = {thought.concept: thought for thought in recallable(mind.thoughts, now_ns, settings)}
    found = (
        Memory(overlap(cue.terms, each.terms), "gist", each.number, each.text, DRIFT, echo=True)
        for each in latest.values()
    )
    energies = {
        memory: weighted_energy(memory.energy, mind, DRIFT, memory.number, settings)
        for memory in found
        if memory.energy
    }
    yield from nlargest(settings.thoughts_recalled, energies, key=lambda each: (energies[each], each.number))
