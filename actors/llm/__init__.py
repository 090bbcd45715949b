"""The effector that calls language models at any endpoint of the OpenAI protocol.

It answers the events that carry a ``ModelCall`` (``actors.llm.calling.REQUESTS``) with ``llm.completed``, or with
``llm.failed`` for every kind of failure; the actor that asked continues without an answer. It decides nothing: model,
number of calls and time limits are settings, and the prompt is in the request. What an endpoint does not support of a
request is learned from its refusals (``actors.llm.wire.dialect``), and recorded with the answer. While a model
generates, pieces of its text are sent to the request's inbox (``actors.llm.calling.SentPiece``); the answer is what
the event holds.
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
