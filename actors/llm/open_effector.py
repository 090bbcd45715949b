"""Opens the endpoint and its connections, and the effector that uses them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from actors.contract.answers.window import STREAMED
from actors.contract.privacy.recognising import masking_fault
from actors.llm.calling import REQUESTS, LlmCaller, enrich_failure
from actors.llm.client import ChatClient
from actors.llm.endpoint import API_KEY, BadEndpoint, Endpoint, api_key, base_url
from actors.llm.local import local_server, model_file
from actors.llm.settings import LlmSettings, Models
from actors.runtime.effectors.spec import EffectorContext
from events.loggers import get_logger
from schemas.effectors.contract import Effector
from schemas.vocabulary.llm import LlmFailed

_GRACE_S = 5.0
"""Seconds that the effector's shell waits beyond a request's limit: the request's own error says more than that."""

_logger = get_logger("neuraxis.llm")


@asynccontextmanager
async def open_llm(settings: LlmSettings, context: EffectorContext) -> AsyncIterator[Effector]:
    """Open the effector for the length of the ``async with`` block.

    Raises:
        BadEndpoint: the settings name no endpoint, or one that cannot be used; or people's data cannot
            be masked as they say.
    """
    if fault := masking_fault(settings.privacy):
        raise BadEndpoint(f"llm.privacy is on, and {fault}")
    async with _endpoint(settings, context.environment) as (endpoint, backend):
        if endpoint.key_in_the_clear:
            _logger.warning("key_in_the_clear", base_url=endpoint.base_url, variable=API_KEY)
        if backend == "local":
            settings = _of_one_model(settings, model_file(settings).stem)
        context_tokens = settings.context_tokens or (settings.local_context if backend == "local" else 0)
        async with ChatClient.open(
            endpoint, connect_s=settings.connect_ms / 1000, concurrency=settings.concurrency, context=context_tokens
        ) as client:
            caller = LlmCaller(
                client,
                settings,
                backend=backend,
                publish=context.publish,
                clock=context.clock,
                withheld_for=STREAMED if context.withheld_for is None else context.withheld_for,
            )
            _logger.info("llm_serves", backend=backend, base_url=endpoint.base_url)
            yield Effector(
                name="llm",
                consumes=REQUESTS,
                handle=caller.handle,
                failed=LlmFailed,
                enrich_failure=enrich_failure,
                timeout_s=settings.longest_ms / 1000 + _GRACE_S,
                concurrency=settings.concurrency,
            )


@asynccontextmanager
async def _endpoint(settings: LlmSettings, environment: Mapping[str, str]) -> AsyncIterator[tuple[Endpoint, str]]:
    if settings.backend == "local":
        async with local_server(settings) as endpoint:
            yield endpoint, "local"
        return
    if settings.backend == "composer" or not settings.base_url:
        raise BadEndpoint(
            "no language model is attached: set llm.base_url, or llm.backend to `local`; without one, run no llm worker"
        )
    yield Endpoint(base_url(settings.base_url), api_key(environment, settings.api_key_file)), "openai"


def _of_one_model(settings: LlmSettings, model: str) -> LlmSettings:
    return msgspec.structs.replace(settings, models=Models(**dict.fromkeys(Models.__struct_fields__, model)))
