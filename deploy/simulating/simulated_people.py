"""The people who talk to a simulated agent: what they need, and how they react to the mode of an answer.

A need is a kind of utterance with the mode that would satisfy the person. A person who gets an answer where a question
back was needed repeats the utterance, or says what was meant. One whose shared history is ignored refers to it. One who
only gets an acknowledgement complains. What memory knows is drawn at random with each utterance, so memory is as full
on the first day as on the last. All draws come from one seeded generator.
"""

from importlib.resources import files
from random import Random

import msgspec

from schemas.vocabulary.memory import COLD, Familiarity
from schemas.vocabulary.router import Mode


class MemoryRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many turns, gists and facts memory may hold at an utterance: the least and the most of each.

    A turn is of the same session; a gist is the summary of what was said on a topic.
    """

    turns: tuple[int, int]
    gists: tuple[int, int]
    facts: tuple[int, int]


class Need(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of utterance: the mode that satisfies the person, what memory holds (``remembered``), and templates."""

    mode: Mode
    remembered: MemoryRange
    texts: tuple[str, ...]


class PeoplesWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything people say, as templates with the slots ``thing``, ``place`` and ``time``."""

    things: tuple[str, ...]
    places: tuple[str, ...]
    times: tuple[str, ...]
    needs: dict[str, Need]
    reactions: dict[str, tuple[str, ...]]


WORDS = msgspec.json.decode(files(__package__).joinpath("people.json").read_bytes(), type=PeoplesWords)


class Population(msgspec.Struct, frozen=True, kw_only=True):
    """Who talks to the agent.

    Attributes:
        mix: Need -> its weight among the utterances after a greeting.
        greeting: Share of sessions that begin with a greeting.
        shortest: Fewest utterances of a session, without reactions.
        longest: Most utterances of a session, without reactions.
        complaining: Share of unmet needs to which the person reacts in the next utterance.
        thanking: Share of met needs for which the person says thanks.
    """

    mix: dict[str, float] = msgspec.field(
        default_factory=lambda: {"report": 0.5, "question": 0.14, "vague": 0.18, "recall": 0.1, "blank": 0.005}
    )
    greeting: float = 0.35
    shortest: int = 3
    longest: int = 9
    complaining: float = 0.85
    thanking: float = 0.05

    @property
    def mean_length(self) -> float:
        """How many utterances a session has on average, without reactions."""
        return (self.shortest + self.longest) / 2 + self.greeting


class Utterance(msgspec.Struct, frozen=True):
    """An utterance, its need, the mode that would satisfy the person, and what memory knows of it."""

    text: str
    need: str
    mode: Mode
    familiarity: Familiarity


def utterance_of(need: str, random: Random) -> Utterance:
    """Return a random utterance of a need."""
    kind = WORDS.needs[need]
    return Utterance(_filled(random.choice(kind.texts), random), need, kind.mode, _familiarity(kind.remembered, random))


def session_of(population: Population, random: Random) -> list[str]:
    """Return the needs of a random session, in order."""
    count = random.randint(population.shortest, population.longest)
    needs = random.choices(list(population.mix), list(population.mix.values()), k=count)
    return ["greeting", *needs] if random.random() < population.greeting else needs


def reaction(
    before: Utterance, answered: Mode | None, first: Mode | None, people: Population, random: Random
) -> Utterance | None:
    """Return a person's reaction to an answer; None if there is none, and the next need follows.

    Args:
        before: The utterance that was answered.
        answered: The mode of the answer, if there was one.
        first: The router's first choice, if it was another mode, such as ACT, whose results another mode then answers.
        people: Who talks.
        random: Draws.
    """
    if answered is None:
        return None
    if before.mode == (first or answered):
        return _reaction_of_kind("satisfied", random) if random.random() < people.thanking else None
    if random.random() >= people.complaining:
        return None
    if answered == "ACKNOWLEDGE":
        return _reaction_of_kind("disappointed", random)
    if answered != "RESPOND":
        return None
    if before.mode == "CLARIFY":
        return before if random.random() < 0.5 else _reaction_of_kind("clarifying", random)
    return _reaction_of_kind("referring", random) if before.mode == "ACT" else None


def _reaction_of_kind(kind: str, random: Random) -> Utterance:
    mode: Mode = "ACKNOWLEDGE" if kind == "satisfied" else "RESPOND"
    known = _familiarity(WORDS.needs["report"].remembered, random)
    return Utterance(_filled(random.choice(WORDS.reactions[kind]), random), kind, mode, known)


def _filled(template: str, random: Random) -> str:
    thing, place, time = random.choice(WORDS.things), random.choice(WORDS.places), random.choice(WORDS.times)
    return template.format(thing=thing, place=place, time=time)


def _familiarity(remembered: MemoryRange, random: Random) -> Familiarity:
    """Return how much memory knows about an input; ``context_warmth``, in [0, 1], sums that up by memory's formula."""
    turns, gists, facts = (random.randint(*limits) for limits in (remembered.turns, remembered.gists, remembered.facts))
    warmth = 0.4 * min(gists / 5, 1.0) + 0.3 * min(facts / 5, 1.0) + 0.3 * min(turns / 4, 1.0)
    return msgspec.structs.replace(
        COLD,  # what memory knows if it knows nothing
        context_warmth=round(warmth, 6),
        working_memory_turns=turns,
        gist_count=gists,
        fact_count=facts,
        fact_keys=tuple(f"fact {number}" for number in range(facts)),
        is_new_topic=not turns,
        session_exchange_count=turns,
    )
