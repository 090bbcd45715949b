"""Delegate: the effector that asks external specialists, which are NATS micro services.

A specialist is a micro service whose metadata holds ``neuraxis.specialist: 1`` and whose endpoint lies below
``specialist.``. It is found by its name in the broker's own registry (``$SRV.INFO``), which is empty until a service
runs. The effector answers ``act.delegation_requested`` with ``delegate.answered`` or ``delegate.failed``; after a
failure, the ACT loop, which gathers information for an answer, goes on without that action's result.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from actors.delegate.settings import DelegateSettings
from actors.delegate.specialist_call import SpecialistCaller, enrich_failure
from actors.runtime.effectors.spec import EffectorContext, EffectorSpec
from schemas.effectors.contract import Effector
from schemas.vocabulary.act import ActDelegationRequested
from schemas.vocabulary.delegate import DelegateFailed

_GRACE_S = 5.0
"""Seconds that the worker waits longer than a question may take: the question's own error says more."""


@asynccontextmanager
async def _open(settings: DelegateSettings, context: EffectorContext) -> AsyncIterator[Effector]:
    caller = SpecialistCaller(context.connection, settings, context.clock)
    yield Effector(
        name="delegate",
        consumes=(ActDelegationRequested,),
        handle=caller.handle,
        failed=DelegateFailed,
        enrich_failure=enrich_failure,
        timeout_s=settings.longest_ms / 1000 + _GRACE_S,
        concurrency=settings.concurrency,
    )


EFFECTOR = EffectorSpec("delegate", DelegateSettings, _open)

__all__ = ["EFFECTOR", "DelegateSettings"]
