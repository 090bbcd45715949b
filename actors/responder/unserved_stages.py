"""Stages that nobody serves: which open exchanges wait for one, and how they end. Pure.

A stage that swarm records as lost counts as lost until swarm records that it is found, or until the stage itself
produces an event. Swarm may itself stop working, and a stage that is back must not stay marked as lost.
"""

from collections.abc import Iterator

import msgspec

from actors.responder.composing.composer import text_of
from actors.responder.drafts import end_by_best_draft
from actors.responder.end_of_exchange import end_of
from actors.responder.forwarding import is_forwarded
from actors.responder.pending import Case, Pending
from actors.responder.verdicts import end_without_model
from schemas.actor import Message, Scope
from schemas.availability import Lack
from schemas.catalogue import entry_of
from schemas.persistent import Map
from schemas.stages import token_among
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import StageFound, StageLost

AT_ONCE = 400
"""Most exchanges that one event ends, since a decision is stored as one batch. Swarm repeats the event later."""


class LostStage(msgspec.Struct, frozen=True):
    """The partitions of a stage that nobody serves, ``of`` how many, and why."""

    scope: Scope
    partitions: tuple[str, ...]
    of: int
    reason: Lack

    def concerns(self, agent: str, session: str) -> bool:
        """Whether an exchange of this agent and session depends on one of these partitions."""
        return bool(token_among(self.partitions, self.scope, self.of, agent, session))


Stages = Map[str, LostStage]
"""Name of a stage -> its partitions that nobody serves."""


def with_message(lost: Stages, message: Message) -> Stages:
    """Return the lost stages after a message: as swarm records, and without the stage that wrote this message."""
    event = message.event
    if isinstance(event, StageLost):
        return lost.set(event.actor, LostStage(Scope(event.scope), event.partitions, event.of, event.reason))
    if isinstance(event, StageFound):
        return lost.delete(event.actor) if event.actor in lost else lost
    speaker = entry_of(event).owner
    known = lost.get(speaker)
    if known is None or not known.concerns(message.agent, message.session):
        return lost
    spoken = token_among(known.partitions, known.scope, known.of, message.agent, message.session)
    rest = tuple(name for name in known.partitions if name != spoken)
    return lost.set(speaker, msgspec.structs.replace(known, partitions=rest)) if rest else lost.delete(speaker)


def awaited_stages(pending: Pending) -> Iterator[str]:
    """Yield the stages that an exchange waits for now."""
    stage = pending.silent[0]
    match stage:
        case "COHERENCE":
            yield "coherence"
            if "BREAKER" in pending.silent:
                yield "appraisal"  # neither has spoken, and both need its numbers
        case "REFLEX" | "INTUITION" | "BREAKER" | "ARBITER":
            yield stage.lower()
        case _:
            yield from _deliberating(pending)


def _deliberating(pending: Pending) -> Iterator[str]:
    if is_forwarded(pending):
        # The answer of another model comes from no stage; reflex judges it next.
        yield from ("reflex",) if pending.answer is not None else ()
        return
    if pending.awaits == "model":
        yield "llm"
    elif pending.awaits == "reflex":
        yield "reflex"
    elif pending.awaits == "guardrails":
        yield from ("appraisal", "guardrails")
    elif pending.first_mode == "ACT" and not pending.acted:
        yield "act"
    elif pending.recalled or pending.acted:
        yield "router"
    else:
        yield from ("memory", "router")


def end_of_unserved(lost: Stages, case: Case) -> ResponseEmitted | None:
    """Return the end of an exchange that waits for a stage which nobody serves; None where it waits for none.

    As after a failed model, the composer answers instead, and an existing draft goes out without judgement.
    """
    pending = case.pending
    for stage in awaited_stages(pending):
        known = lost.get(stage)
        if known is None or not known.concerns(pending.agent, pending.session):
            continue
        why = f"{known.reason}: {stage}"
        if stage == "llm":
            return end_without_model(case, known.reason)
        if pending.drafts and (drafted := end_by_best_draft(case, why)) is not None:
            return drafted
        return end_of(pending, pending.silent[0], "FAILED", why, text_of("unfinished"))
    return None
