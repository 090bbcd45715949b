"""Overrides of guardrails: given through the log, and answered there.

Guardrails decide whether a finished deliberation, a loop, may run again; an override lifts their limits for a while.
"""

from functools import partial

import msgspec

from actors.gateway import is_answer_to
from deploy.operating.deadline import Deadline
from deploy.operating.order_client import OrderClient
from events.jetstream import JetStreamLog
from schemas.vocabulary.guardrails import GuardrailsOverridden, GuardrailsRefused
from schemas.vocabulary.loops import LoopOverridden


class OverrideDone(msgspec.Struct, frozen=True, kw_only=True):
    """An override that is in force for ``lasts_s`` seconds, with the sequences of order and answer.

    It holds for ``family``, which is the loop with all its reruns. ``fatigue`` and ``max_reruns`` say which limits are
    lifted: the one on fatigue, which grows with reruns that improve nothing, and the one on the number of reruns.
    """

    agent: str
    loop_id: str
    family: str
    fatigue: bool
    max_reruns: bool
    by: str
    why: str
    lasts_s: float
    ordered_seq: int
    answered_seq: int


class NotOverridden(Exception):
    """An override that guardrails have read, but refused; the message says why."""

    code = "not_overridden"


async def give_override(log: JetStreamLog, agent: str, order: LoopOverridden, *, deadline: Deadline) -> OverrideDone:
    """Append an override and wait for the answer of guardrails, in the time that is left.

    ``deadline`` is told how far the override has come: its error says so.

    Raises:
        NotOverridden: guardrails know no such loop of the agent, or failed while they decided.
        InvalidInput, LogError: see ``Client.report`` and ``Client.first``.
    """
    async with OrderClient.open(log) as orders:
        find = f"`neuraxis guardrails show {order.loop_id} --agent {agent}` tells, once the broker answers"
        deadline.note_sending(f"the override of loop {order.loop_id!r}", find)
        reported = await orders.client.report(order, agent=agent, within=deadline.left_for_step)
        deadline.note_stored(
            reported.seq, "guardrails have not answered: they will when their worker runs; `neuraxis doctor` tells"
        )
        subject = f"log.{log.partitions.agent_token(agent)}.*.guardrails"
        answer = await orders.answer_of(
            "guardrails",
            [f"{subject}.{name}" for name in ("overridden", "refused", "failed")],
            reported.seq,
            partial(is_answer_to, reported.id),
            agent=agent,
            what=f"the override (sequence {reported.seq})",
            within=deadline.left + 1,  # the command's deadline is first: its error tells how far the override came
        )
    event = answer.message.event
    if isinstance(event, GuardrailsRefused):
        raise NotOverridden(
            f"guardrails know no loop {event.loop_id!r} of agent {agent!r}: check its name, or name its --agent"
        )
    if not isinstance(event, GuardrailsOverridden):
        raise NotOverridden(f"guardrails could not take the override: see sequence {answer.stored.seq} of the log")
    return OverrideDone(
        agent=agent,
        loop_id=event.loop_id,
        family=event.family,
        fatigue=event.override_fatigue,
        max_reruns=event.override_max_reruns,
        by=event.overridden_by,
        why=event.override_reason,
        lasts_s=event.lasts_ms / 1000,
        ordered_seq=reported.seq,
        answered_seq=answer.stored.seq,
    )
