"""Recall: finds the memories of all layers that match a cue, each with an energy in [0, 1]. Pure, exact everywhere.

A turn is one of the session's latest exchanges, a gist an exchange's summary in one line, an episode what is remembered
of it for long, a fact what a person stated, a concept a term that occurred in episodes. The energy says how strongly a
memory is recalled:

========  =========================================================================================
layer     energy
========  =========================================================================================
turn      cosine of the embeddings; only turns of the session itself
gist      cosine of the embeddings, unless its exchange is still a turn
episode   cosine of the embeddings, times 0.85 to 1 by its salience, unless its exchange is still a turn or a gist
fact      half the share of the cue's terms that the fact has or relates to, plus half the share of the terms of its
          key that are asked for; or the cosine with the exchange that stated it, if that is more; at least 0.5 if the
          cue asks for all facts
concept   if the cue names it: its confidence, times s / (1 + s) for its decayed strength s
drift     overlap of terms, for the latest thought on a concept while idle; in any session, as a gist; two at most
========  =========================================================================================

Salience is how exciting and new an exchange was. Overlap of terms replaces a lower cosine in two cases: if no embedding
can be compared, and if the terms of the cue are not those of its embedding. Episodes are then searched among those most
similar, and among those of the concepts that the cue names.

The energy is multiplied by the weight that reviews gave the memory (``weights``). Then the strongest are taken: first
statements of a person, then echoes, in which the person only asked and the agent answered. Of memories with the same
content one is taken; an exchange that says no more than a fact counts as that fact.
"""

from collections.abc import Iterable, Iterator
from heapq import nlargest

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.agent_memory import AgentMemory
from actors.memory.extraction.keys import ASKED_AS, NAME
from actors.memory.layers.concepts import neighbours
from actors.memory.layers.episodes import Episode, weight_of
from actors.memory.layers.facts import ASKED_FOR_ALL, StatedFact, current_facts, energy_of, stale_exchanges, text_of
from actors.memory.layers.gist import persons_words, states_nothing, tokens_of
from actors.memory.layers.index import Near
from actors.memory.layers.session import Session
from actors.memory.layers.thoughts import DRIFT, not_expired
from actors.memory.layers.vectors import cosines_of
from actors.memory.settings import MemorySettings
from actors.memory.terms import DECIMALS, overlap
from actors.memory.wandering import strength_in
from actors.memory.weights import EXCHANGE_LAYERS, has_weight, weighted_energy
from schemas.vocabulary.memory import NO_LONGER_SO, Layer, Recollection

_LAYERS: tuple[Layer, ...] = ("turn", "gist", "fact", "episode", "concept")
"""The order of layers among equally strong memories."""

_ORDER = {layer: index for index, layer in enumerate(_LAYERS)}

_EXCHANGE = "exchange:"
"""Prefix of an exchange's number where contents are compared."""

_EXAMINED_FACTOR = 4
"""Number of episodes examined for their terms or weights, for each one that may be recalled."""

_MOST_EXAMINED = 512
"""Most episodes that are examined to find statements, if the same question was asked many times."""

_NAMING = (*ASKED_AS[NAME], "named")
"""Words that only say that something is a name."""

_NEIGHBOURS_SHOWN = 3
"""Most terms that are shown with a concept."""


class Cue(msgspec.Struct, frozen=True):
    """What memories are searched with.

    ``embedding`` is empty for none; ``model`` is the model that made it. ``other_words``: the terms are not those of
    the embedded text, so they count in addition. ``asks`` are further terms, for facts that are asked for without being
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


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A memory that may be recalled, with its energy.

    ``number`` identifies it within its ``kind``; an empty ``kind`` stands for its layer.

    ``says`` is its content for comparing with others; "" if no other can have the same. For a fact it is the number
    of the exchange that states only this fact, if there is one. ``echo``: a person only asked, or stated nothing.

    The ``text`` of a concept is only its term. The full line is made once the concept is recalled: few of the concepts
    that a cue names are recalled.
    """

    energy: float
    layer: Layer
    number: int
    text: str
    kind: str = ""
    says: str = ""
    echo: bool = False

    @property
    def id_prefix(self) -> str:
        """The prefix of its id."""
        return self.kind or self.layer


def recall(memory: AgentMemory, session: Session, cue: Cue, now_ns: int, settings: MemorySettings) -> Found:
    """Return the memories that a cue recalls in a session now."""
    gists = session.fresh_gists(now_ns, settings)
    turns = {turn.number: turn.text for turn in session.turns}
    stale = stale_exchanges(memory.facts)
    recent = {gist.number: gist.text for gist in gists if gist.number not in turns}
    found = [
        *_session_memories(memory, cue, "turn", turns, stale),
        *_session_memories(memory, cue, "gist", recent, stale),
        *_episodes(memory, cue, frozenset((*turns, *recent)), stale, settings),
        *_facts(memory, cue, settings),
        *_concepts(memory, cue, now_ns, settings),
        *_thoughts(memory, cue, now_ns, settings),
    ]
    best = max((candidate.energy for candidate in found), default=0.0)
    return Found(strongest(found, memory, settings), best)


def strongest(recalled: Iterable[Candidate], memory: AgentMemory, settings: MemorySettings) -> tuple[Recollection, ...]:
    """Return the recalled memories: those with at least the minimum energy, no two with the same content.

    Statements come before echoes; among each, those of the highest weighted energy, and of equals the latest.
    """
    candidates = [
        _weighted(candidate, memory, settings)
        for candidate in recalled
        if candidate.energy >= settings.floor and candidate.energy > 0.0
    ]
    candidates.sort(
        key=lambda candidate: (candidate.echo, -candidate.energy, _ORDER[candidate.layer], -candidate.number)
    )
    shown: set[str] = {candidate.says for candidate in candidates if candidate.layer == "fact"}
    unique = []
    for candidate in candidates:
        if candidate.layer != "fact" and candidate.says:
            if candidate.says in shown or _exchange_key(candidate) in shown:
                continue
            shown.add(candidate.says)
        unique.append(candidate)
    return tuple(_recollection(candidate, memory) for candidate in unique[: settings.recollections])


def _weighted(candidate: Candidate, memory: AgentMemory, settings: MemorySettings) -> Candidate:
    energy = weighted_energy(candidate.energy, memory, candidate.id_prefix, candidate.number, settings)
    return candidate if energy == candidate.energy else msgspec.structs.replace(candidate, energy=energy)


def _recollection(candidate: Candidate, memory: AgentMemory) -> Recollection:
    text = _concept_text(candidate.text, memory) if candidate.layer == "concept" else candidate.text
    return Recollection(
        id=f"{candidate.id_prefix}:{candidate.number}",
        layer=candidate.layer,
        text=text,
        energy=candidate.energy,
        tokens=tokens_of(text),
        echo=candidate.echo,
    )


def _exchange(energy: float, layer: Layer, number: int, text: str, stale: frozenset[int]) -> Candidate:
    """Return an exchange that may be recalled; ``stale`` are those that stated something which was taken back later."""
    is_stale = number in stale
    shown = f"{text}{NO_LONGER_SO}" if is_stale else text
    return Candidate(energy, layer, number, shown, says=persons_words(text), echo=is_stale or states_nothing(text))


def _exchange_key(candidate: Candidate) -> str:
    """Return the key of the exchange that a memory is of; empty for a memory of another kind."""
    return f"{_EXCHANGE}{candidate.number}" if candidate.layer in EXCHANGE_LAYERS and not candidate.kind else ""


def _concept_text(term: str, memory: AgentMemory) -> str:
    """Return a concept as one line: its term, and the terms that it occurred with most often."""
    others = neighbours(term, memory.concepts, memory.episodes.kept, _NEIGHBOURS_SHOWN)
    return f"{term} (with {', '.join(others)})" if others else term


def _session_memories(
    memory: AgentMemory, cue: Cue, layer: Layer, texts: dict[int, str], stale: frozenset[int]
) -> Iterator[Candidate]:
    """Yield a session's own memories; their embeddings are those of their episodes, if these are still kept."""
    embeddings = [_comparable(memory.episodes.kept.get(number), cue) for number in texts]
    similar = cosines_of(cue.embedding, embeddings) if cue.embedding else [0.0] * len(texts)
    for (number, text), embedding, cosine in zip(texts.items(), embeddings, similar, strict=True):
        term_overlap = overlap(cue.terms, terms_of(text)) if cue.other_words or not embedding else 0.0
        yield _exchange(max(cosine, term_overlap), layer, number, text, stale)


def _comparable(episode: Episode | None, cue: Cue) -> bytes:
    """Return an episode's embedding if it can be compared with the cue's; else empty."""
    return episode.embedding if episode is not None and cue.embedding and episode.model == cue.model else b""


def _episodes(
    memory: AgentMemory, cue: Cue, without: frozenset[int], stale: frozenset[int], settings: MemorySettings
) -> Iterator[Candidate]:
    by_terms = cue.other_words or not cue.embedding
    most = settings.recollections * (_EXAMINED_FACTOR if by_terms or memory.weights else 1)
    near = _nearest(memory, cue, without, most, settings)
    if not by_terms:
        for number, energy in _without_repetitions(near, memory, stale):
            yield _exchange(energy, "episode", number, memory.episodes.kept[number].text, stale)
        return
    energies = {each.number: each.energy for each in near}
    of_concepts = (memory.concepts[term].episodes for term in cue.terms if term in memory.concepts)
    for number in {number for numbers in of_concepts for number in numbers} - without:
        energies.setdefault(number, 0.0)
    for number, energy in energies.items():
        episode = memory.episodes.kept[number]
        term_overlap = overlap(cue.terms, terms_of(episode.text)) * weight_of(episode)
        yield _exchange(max(energy, round(term_overlap, DECIMALS)), "episode", number, episode.text, stale)


def _nearest(memory: AgentMemory, cue: Cue, without: frozenset[int], most: int, settings: MemorySettings) -> list[Near]:
    """Return the episodes nearest to a cue: enough of them that repetitions and echoes do not hide statements."""
    ranking = memory.episodes.ranking(cue.model, cue.embedding, without)
    near, begin = ranking.strongest(most), 0
    statements: set[str] = set()
    while len(near) == most < _MOST_EXAMINED and near[-1].energy >= settings.floor:
        statements.update(_statements(near[begin:], memory))
        if len(statements) >= settings.recollections:
            break
        begin, most = most, most * _EXAMINED_FACTOR
        near = ranking.strongest(most)
    return near


def _statements(near: Iterable[Near], memory: AgentMemory) -> Iterator[str]:
    """Yield what persons stated in episodes."""
    for each in near:
        text = memory.episodes.kept[each.number].text
        if not states_nothing(text):
            yield persons_words(text)


def _without_repetitions(
    near: Iterable[Near], memory: AgentMemory, stale: frozenset[int]
) -> Iterator[tuple[int, float]]:
    """Yield numbers and energies of episodes, strongest first, without those that repeat one before them.

    A repetition is never recalled: of memories with the same content, only one is. An episode stands on its own if a
    review gave it a weight, if it is stale, or if a fact may stand for it.
    """
    apart = {*stale, *(fact.exchanges[-1] for _, fact in current_facts(memory.facts) if fact.exchanges)}
    shown: set[str] = set()
    for each in near:
        number, text = each.number, memory.episodes.kept[each.number].text
        repeats = text in shown
        if (repeats or persons_words(text)) and number not in apart and not has_weight(memory, "episode", number):
            if repeats:
                continue
            shown.add(text)
        yield number, each.energy


def _facts(memory: AgentMemory, cue: Cue, settings: MemorySettings) -> Iterator[Candidate]:
    sought = frozenset((*cue.terms, *cue.asks))
    known = list(current_facts(memory.facts))
    origins = [memory.episodes.kept.get(fact.exchanges[-1]) if fact.exchanges else None for _, fact in known]
    embeddings = [_comparable(episode, cue) for episode in origins]
    similar = cosines_of(cue.embedding, embeddings) if cue.embedding else [0.0] * len(known)
    for (key, fact), episode, cosine in zip(known, origins, similar, strict=True):
        asked = ASKED_FOR_ALL if cue.asks_for_all else 0.0
        energy = max(energy_of(key, fact, sought), cosine, asked)
        if energy:
            is_recalled = energy >= settings.floor
            only_states = is_recalled and episode is not None and _only_states(episode.text, fact)
            says = f"{_EXCHANGE}{fact.exchanges[-1]}" if only_states else ""
            yield Candidate(energy, "fact", fact.number, text_of(key, fact), says=says)


def _only_states(text: str, fact: StatedFact) -> bool:
    """Whether an exchange only states this fact."""
    return {*terms_of(persons_words(text))}.issubset((*fact.terms, *_NAMING))


def _concepts(memory: AgentMemory, cue: Cue, now_ns: int, settings: MemorySettings) -> Iterator[Candidate]:
    for term in cue.terms:
        concept = memory.concepts.get(term)
        if concept is not None:
            strength = strength_in(memory, term, now_ns, settings)
            energy = round(concept.confidence * strength / (1.0 + strength), DECIMALS)
            yield Candidate(energy, "concept", concept.number, term, echo=True)


def _thoughts(memory: AgentMemory, cue: Cue, now_ns: int, settings: MemorySettings) -> Iterator[Candidate]:
    # The latest thought on each concept, and only a few: an agent that was idle long has many, and they would hide the
    # rest.
    latest = {thought.concept: thought for thought in not_expired(memory.thoughts, now_ns, settings)}
    found = (
        Candidate(overlap(cue.terms, each.terms), "gist", each.number, each.text, DRIFT, echo=True)
        for each in latest.values()
    )
    energies = {
        candidate: weighted_energy(candidate.energy, memory, DRIFT, candidate.number, settings)
        for candidate in found
        if candidate.energy
    }
    yield from nlargest(settings.thoughts_recalled, energies, key=lambda each: (energies[each], each.number))
