"""The effector that calls language models at any endpoint of the OpenAI protocol (source M).

It answers the events that carry a ``ModelCall`` (``actors.llm.calling.REQUESTS``) with ``llm.completed``, or with
``llm.failed`` whatever went wrong; the actor that asked continues without an answer. It decides nothing: model, number
of calls and time limits are settings, and the prompt is in the request. If an endpoint does not support a part of the
request, this is learned from its refusals (``actors.llm.wire.dialect``), and recorded with the answer. While a model
generates, pieces of its text are sent to the request's inbox (``actors.llm.calling.Partial``); only the event is the
answer.
"""

from contextlib import AbstractAsyncContextManager

from actors.llm.settings import LlmSettings
from actors.runtime.effectors.spec import EffectorContext, EffectorSpec
from schemas.effectors.contract import Effector


def _open(settings: LlmSettings, context: EffectorContext) -> AbstractAsyncContextManager[Effector]:
    # Imported here: every process loads the settings, but only the one that hosts the effector needs an HTTP client.
    from actors.llm.open_effector import open_llm

    return open_llm(settings, context)


EFFECTOR = EffectorSpec("llm", LlmSettings, _open)

__all__ = ["EFFECTOR", "LlmSettings"]
