"""Forwarding requests to an upstream endpoint, for as long as a gateway runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from actors.gateway import Client
from actors.gateway.http.openai.chat_service import ChatService
from actors.gateway.http.openai.forwarding import UpstreamForwarder
from actors.gateway.http.openai.passthrough.guarding import Watch
from actors.gateway.http.openai.upstream import Upstream
from actors.llm.endpoint import Endpoint
from actors.reflex.settings import ReflexSettings
from deploy.config.loading import UPSTREAM_VARIABLE
from deploy.config.settings import UpstreamSettings
from events.loggers import get_logger

_logger = get_logger("neuraxis.gateway")


@asynccontextmanager
async def forwarding_to(
    endpoint: Endpoint | None,
    settings: UpstreamSettings,
    chat: ChatService,
    client: Client,
    *,
    sends_callers_keys: Callable[[], bool],
    reading: ReflexSettings,
) -> AsyncIterator[UpstreamForwarder | None]:
    """Forward requests to an endpoint within the block; None if there is no endpoint.

    ``sends_callers_keys`` says whether callers' own keys are passed on if the endpoint's key is not known; see
    ``Upstream.open``. ``reading`` are the settings by which reflex reads answers; streamed answers are read by the same
    ones here.
    """
    if endpoint is None:
        yield None
        return
    if endpoint.key_in_the_clear:
        _logger.warning("key_in_the_clear", base_url=endpoint.base_url, variable=UPSTREAM_VARIABLE)
    async with (
        Upstream.open(
            endpoint.base_url,
            endpoint.key_headers,
            connect_s=settings.connect_s,
            is_local=endpoint.is_loopback,
            sends_callers_keys=sends_callers_keys,
        ) as upstream,
        UpstreamForwarder.open(
            chat,
            client,
            upstream,
            wait_s=settings.wait_s,
            watch=Watch(reading.faults, reading.leak_share),
            privacy=settings.privacy,
        ) as forwarding,
    ):
        yield forwarding
