"""The skills that an ACT loop, which looks things up before an answer, may ask memory for.

No skill calls a model; a failure states its reason. A turn is one of a session's latest exchanges, a gist an exchange's
summary in one line, an episode what is remembered of it, a concept a term that occurred in episodes.
"""

from collections.abc import Iterable

import msgspec

from actors.contract.text.terms import terms_of
from actors.memory.agent_memory import AgentMemory, failure_rate
from actors.memory.extraction.fact_extraction import fact_of
from actors.memory.extraction.private_facts import without_private
from actors.memory.familiarity import familiarity_of
from actors.memory.layers.concepts import spread
from actors.memory.layers.facts import CurrentValues, asked_by, asks_for_all
from actors.memory.layers.session import Session
from actors.memory.pending import Pending
from actors.memory.recall import Candidate, Cue, recall, strongest
from actors.memory.settings import MemorySettings
from schemas.vocabulary.act import Action
from schemas.vocabulary.memory import ActionResult, Fact, Introspection

FORGOTTEN = "exchange_forgotten"
NOTHING_TO_MEMORIZE = "nothing_to_memorize"
NOT_MEMORYS = "not_memorys"
UNKNOWN_SKILL = "unknown_skill"
"""Reasons why an action failed: its exchange is forgotten; there is no fact to keep; the skill is another actor's; the
skill is unknown."""


class SkillContext(msgspec.Struct, frozen=True):
    """What actions work on: an agent's memory as it was before them, in an exchange (``pending``) of a session."""

    memory: AgentMemory
    session: Session
    pending: Pending
    now_ns: int
    settings: MemorySettings
    keeps_private: bool = True

    def cue_of(self, query: str) -> Cue:
        """Return the cue for a query, by which memories are searched: its terms, and the embedding of the exchange."""
        terms, own = terms_of(query), terms_of(self.pending.text)
        return Cue(
            terms,
            self.pending.model,
            self.pending.embedding,
            other_words=terms != own,
            asks=asked_by(query),
            asks_for_all=asks_for_all(query),
        )


def perform(context: SkillContext, action: Action) -> ActionResult:
    """Return the result of an action."""
    match action.skill:
        case "recall":
            found = recall(
                context.memory, context.session, context.cue_of(action.query), context.now_ns, context.settings
            )
            return ActionResult(index=action.index, skill="recall", ok=True, recollections=found.recollections)
        case "associate":
            associated = strongest(_associated(context, action.query), context.memory, context.settings)
            return ActionResult(index=action.index, skill="associate", ok=True, recollections=associated)
        case "introspect":
            introspection = _introspection(context)
            return ActionResult(index=action.index, skill="introspect", ok=True, introspection=introspection)
        case "memorize":
            no_fact = FORGOTTEN if context.pending.forgotten else NOTHING_TO_MEMORIZE
            reason = "" if fact_to_memorize(context, action) is not None else no_fact
            return ActionResult(index=action.index, skill="memorize", ok=not reason, reason=reason)
        case "delegate":
            return ActionResult(index=action.index, skill="delegate", ok=False, reason=NOT_MEMORYS)
        case _:
            # A newer release may ask for skills that this one does not have.
            return ActionResult(index=action.index, skill=action.skill, ok=False, reason=UNKNOWN_SKILL)


def fact_to_memorize(context: SkillContext, action: Action) -> Fact | None:
    """Return the fact that an action asks to keep; None for another skill, or if there is nothing to keep."""
    if action.skill != "memorize" or context.pending.forgotten:
        return None
    fact = fact_of(action.key, action.value)
    return fact if fact is None or context.keeps_private or without_private([fact]) else None


def _associated(context: SkillContext, query: str) -> Iterable[Candidate]:
    memory = context.memory
    for term, activation in spread(memory.concepts, memory.episodes.kept, terms_of(query), context.settings).items():
        yield Candidate(activation, "concept", memory.concepts[term].number, term, echo=True)


def _introspection(context: SkillContext) -> Introspection:
    memory, session, settings = context.memory, context.session, context.settings
    found = recall(memory, session, context.cue_of(context.pending.text), context.now_ns, settings)
    familiarity = familiarity_of(memory, session, context.pending, context.now_ns, settings, found.recollections)
    return Introspection(
        context_warmth=familiarity.context_warmth,
        feeling_of_knowing=found.best,
        recall_failure_rate=failure_rate(memory),
        layers={
            "turn": len(session.turns),
            "gist": len(session.fresh_gists(context.now_ns, settings)),
            "fact": len(CurrentValues(memory.facts)),
            "episode": len(memory.episodes.kept),
            "concept": len(memory.concepts),
        },
        skills=dict(sorted(memory.skills.items())),
        world_state_present=familiarity.world_state_present,
    )
