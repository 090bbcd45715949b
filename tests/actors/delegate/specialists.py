"""Specialists to ask: real micro services on a broker, that answer as they are told to."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import nats
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import ServiceConfig

from tests.broker import taken_up

METADATA = {"neuraxis.specialist": "1"}

Handler = Callable[[Request], Awaitable[None]]


@contextlib.asynccontextmanager
async def specialist(
    url: str,
    handler: Handler,
    *,
    name: str = "oracle",
    subject: str = "specialist.oracle",
    metadata: Mapping[str, str] = METADATA,
) -> AsyncIterator[None]:
    """Run a service for the length of the block."""
    client = await nats.connect(url)
    try:
        service = await add_service(client, ServiceConfig(name=name, version="1.0.0", metadata=dict(metadata)))
        await service.add_endpoint(name="ask", subject=subject, handler=handler)
        await taken_up(client)
        yield
    finally:
        await client.close()


def answering(body: bytes) -> Handler:
    """Return what answers every question alike."""

    async def answer(request: Request) -> None:
        await request.respond(body)

    return answer
