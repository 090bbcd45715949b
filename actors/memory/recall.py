"""Recall: what comes to mind of all layers, each memory with an energy in [0, 1]. Pure, and exact on any machine.

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

Where no embedding can be compared, and where the cue's words are not those of the embedding, overlap of terms stands in
for a cosine that is lower. Episodes are then sought among those most similar, and those of the concepts that the cue
names.

The energy is then multiplied by what reviews made of the memory (``weights``), before the strongest are taken: what was
told first, and only then echoes, in which a person asked and the agent answered. Of what says the same one is taken,
and an exchange that says no more than a fact is that fact.
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
"""Of equally strong memories, the earlier layer comes first."""

_OF_EXCHANGES = frozenset(("turn", "gist", "episode"))
_EXCHANGE = "exchange:"

_CANDIDATES = 4
"""Episodes looked at for their words or their weights, for each that may come to mind."""

_FURTHEST = 512
"""Episodes at most that are looked at for what was told, where questions like this one came again and again."""

_NAMING = (*ASKED_AS[NAME], "named")
"""Words that say of a name only that it is one."""

_NEIGHBOURS_SHOWN = 3


class Cue(msgspec.Struct, frozen=True):
    """What memories are sought with.

    ``embedding`` is empty for none, and ``model`` what made it. ``other_words``: the terms are not those of the
    embedding, so they count beside it. ``asks`` are further terms, of facts that are asked for without being named;
    ``asks_for_all``: so is every fact.
    """

    terms: tuple[str, ...]
    model: str = ""
    embedding: bytes = b""
    other_words: bool = False
    asks: tuple[str, ...] = ()
    asks_for_all: bool = False


class Found(msgspec.Struct, frozen=True):
    """What came to mind, strongest first, and the highest energy of anything, whether it came to mind or not."""

    recollections: tuple[Recollection, ...]
    best: float


class Memory(NamedTuple):
    """A memory with its energy; ``number`` names it among those of its ``kind``, by default its layer.

    ``says`` is what it says, for comparing with others; "" for what nothing else says. Of a fact it is the number of
    the exchange that tells it and nothing else, if there is one.

    The ``text`` of a concept is its term alone: its line is put together once it comes to mind, and
    few of those that a cue names do.
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
        """What its id begins with."""
        return self.kind or self.layer


def recall(mind: AgentMemory, session: Session, cue: Cue, now_ns: int, settings: MemorySettings) -> Found:
    """Return what a cue brings to mind in a session at a time."""
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
    """Return the memories that come to mind from the floor on, no two that say the same.

    What was told comes before echoes; then the strongest by their weights, of equals the latest.
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
    told = f"{text}{NO_LONGER_SO}" if is_stale else text
    return Memory(energy, layer, number, told, says=persons_words(text), echo=is_stale or tells_nothing(text))


def _named_exchange(memory: Memory) -> str:
    return f"{_EXCHANGE}{memory.number}" if memory.layer in _OF_EXCHANGES and not memory.kind else ""


def _concept_text(term: str, mind: AgentMemory) -> str:
    """Return a concept in a line: its term, and what it was met with most."""
    others = neighbours(term, mind.concepts, mind.episodes.kept, _NEIGHBOURS_SHOWN)
    return f"{term} (with {', '.join(others)})" if others else term


def _own(mind: AgentMemory, cue: Cue, layer: Layer, texts: dict[int, str], stale: frozenset[int]) -> Iterator[Memory]:
    """Yield a session's own memories; their embeddings are those of their episodes, where they are still kept."""
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
    """Return the episodes nearest to a cue, so many that what was told is not lost behind repetitions and echoes."""
    while True:
        near = mind.episodes.nearest(cue.model, cue.embedding, most, without)
        texts = (mind.episodes.kept[each.number].text for each in near)
        told = {persons_words(text) for text in texts if not tells_nothing(text)}
        if len(near) < most or most >= _FURTHEST or len(told) >= settings.recollections:
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
    """Whether an exchange is only that of telling a fact."""
    return {*terms_of(persons_words(text))}.issubset((*fact.terms, *_NAMING))


def _concepts(mind: AgentMemory, cue: Cue, now_ns: int, settings: MemorySettings) -> Iterator[Memory]:
    for term in cue.terms:
        concept = mind.concepts.get(term)
        if concept is not None:
            strength = strength_in(mind, term, now_ns, settings)
            energy = round(concept.confidence * strength / (1.0 + strength), DECIMALS)
            yield Memory(energy, "concept", concept.number, term, echo=True)


def _thoughts(mind: AgentMemory, cue: Cue, now_ns: int, settings: MemorySettings) -> Iterator[Memory]:
    # Of each concept the latest, and few of these: an agent long idle has many, and they would crowd out what it knows.
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
