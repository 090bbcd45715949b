"""Stages (actors and effectors) that no process serves: which open exchanges wait for one, and how they end. Pure.

In the mode ACT, an exchange waits for the actor act, which looks things up, before the router decides again.

The swarm actor records lost and found stages. A stage counts as lost until swarm records that it is found, or until the
stage itself emits an event: swarm may itself stop working, and a stage that is back must not stay marked as lost.
"""

from collections.abc import Iterator

import msgspec

from actors.responder.composing.composer import text_of
from actors.responder.drafts import end_by_best_draft
from actors.responder.end_of_exchange import end_of
from actors.responder.ending_events import end_without_model
from actors.responder.forwarding import is_forwarded
from actors.responder.pending import ExchangeContext, Pending
from schemas.actor import Message, Scope
from schemas.availability import Lack
from schemas.catalogue import entry_of
from schemas.input_path import token_among
from schemas.persistent import Map
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import StageFound, StageLost

MOST_ENDS = 400
"""Most exchanges that one event ends, since a decision is stored as one batch. Swarm repeats the event for the rest."""


class LostStage(msgspec.Struct, frozen=True):
    """The partitions of a stage that nobody serves, out of ``of`` partitions, and the reason.

    ``scope`` says by which key, agent or session, the stage is partitioned.
    """

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
    stage = entry_of(event).owner
    lost_stage = lost.get(stage)
    if lost_stage is None or not lost_stage.concerns(message.agent, message.session):
        return lost
    # The partition of this agent and session has just emitted an event, so it is served.
    served = token_among(lost_stage.partitions, lost_stage.scope, lost_stage.of, message.agent, message.session)
    rest = tuple(name for name in lost_stage.partitions if name != served)
    return lost.set(stage, msgspec.structs.replace(lost_stage, partitions=rest)) if rest else lost.delete(stage)


def awaited_stages(pending: Pending) -> Iterator[str]:
    """Yield the stages that an exchange waits for now: the first that has given no verdict yet, and those it needs."""
    stage = pending.silent[0]  # silent: without a verdict so far
    match stage:
        case "COHERENCE":
            yield "coherence"
            if "BREAKER" in pending.silent:
                yield "appraisal"  # both stages are awaited, and both need appraisal's numbers
        case "REFLEX" | "INTUITION" | "BREAKER" | "ARBITER":
            yield stage.lower()
        case _:
            yield from _awaited_in_deliberation(pending)


def _awaited_in_deliberation(pending: Pending) -> Iterator[str]:
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


def end_of_unserved(lost: Stages, context: ExchangeContext) -> ResponseEmitted | None:
    """Return the end of an exchange that waits for a stage which nobody serves; None if it waits for no such stage.

    An existing draft goes out without judgement. Without one, the composer (fixed sentences) answers if the stage is
    the model, as after a failed model; for any other stage the exchange ends as FAILED.
    """
    pending = context.pending
    for stage in awaited_stages(pending):
        lost_stage = lost.get(stage)
        if lost_stage is None or not lost_stage.concerns(pending.agent, pending.session):
            continue
        why = f"{lost_stage.reason}: {stage}"
        if stage == "llm":
            return end_without_model(context, lost_stage.reason)
        if pending.drafts and (drafted := end_by_best_draft(context, why)) is not None:
            return drafted
        return end_of(pending, pending.silent[0], "FAILED", why, text_of("unfinished"))
    return None
