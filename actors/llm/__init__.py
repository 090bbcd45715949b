"""The one who speaks to language models: an effector over any endpoint of the OpenAI protocol (source M).

It answers the events that carry a ``ModelCall`` (``actors.llm.calling.REQUESTS``) with ``llm.completed`` or, whatever
goes wrong, ``llm.failed``; who asked goes on without. It decides nothing: which model, how often and how long are
settings, what to ask is in the request. What an endpoint does not take of it is learned from its refusals
(``actors.llm.wire.dialect``), and told with the answer. While a model speaks, pieces of its text go to the request's
inbox (``actors.llm.calling.Partial``); the answer is the event alone.
"""

from contextlib import AbstractAsyncContextManager

from actors.llm.settings import LlmSettings
from actors.runtime.effectors.spec import EffectorContext, EffectorSpec
from schemas.effectors.contract import Effector


def _open(settings: LlmSettings, context: EffectorContext) -> AbstractAsyncContextManager[Effector]:
    # Here: every process loads the settings, and the one that hosts the effector alone needs an HTTP client.
    from actors.llm.open_effector import open_llm

    return open_llm(settings, context)


EFFECTOR = EffectorSpec("llm", LlmSettings, _open)

__all__ = ["EFFECTOR", "LlmSettings"]
