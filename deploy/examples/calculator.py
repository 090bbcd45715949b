"""A specialist to copy from: a calculator, as a NATS micro service that an ACT loop can delegate to.

In an ACT loop, an agent looks things up in several steps before it answers; a specialist is asked in such a step.

Beside `neuraxis up`, with the login that the embedded broker has for specialists::

    python -m deploy.examples.calculator --context .neuraxis/broker/contexts/specialist.json

What makes a service a specialist: its name is the one by which the plan of a step calls it, its metadata hold
``neuraxis.specialist: 1``, and its endpoint lies below ``specialist.``. It is sent
``{"query": ..., "request": ..., "timeout_ms": ...}`` and answers ``{"answer": ...}`` of 16 KB at most, or an error. The
same request may come twice, under the same ``request`` id.
"""

import asyncio
import re
import signal
import sys
from pathlib import Path

import click
import msgspec
import nats
from nats.aio.client import Client
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Service, ServiceConfig

from deploy.examples.arithmetic import NotArithmetic, calculate

NAME = "calculator"
"""The service's name, by which an ACT loop's plan calls it."""

SUBJECT = f"specialist.{NAME}"

# A number with any signs, digits and operators behind it, within a sentence: "What is 7 * (6 + 1)?"
_EXPRESSION = re.compile(r"[-+(]*\s*[\d.][\d\s.,+\-−*/×·÷^%()]*")
_BAD_REQUEST, _UNPROCESSABLE = "400", "422"


class Question(msgspec.Struct, frozen=True):
    """The field of a specialist's request that this one reads."""

    query: str


class Answer(msgspec.Struct, frozen=True):
    """A specialist's answer."""

    answer: str


class Context(msgspec.Struct, frozen=True):
    """The fields of a NATS CLI context that are needed to connect."""

    url: str = "nats://127.0.0.1:4222"
    user: str = ""
    password: str = ""
    inbox_prefix: str = ""


def answer_to(query: str) -> str:
    """Return the answer to a question: the longest arithmetic expression in it, and its value.

    Raises:
        NotArithmetic: it holds none.
    """
    pieces = [piece.strip().rstrip(".,") for piece in _EXPRESSION.findall(query)]
    if not pieces:
        raise NotArithmetic("no arithmetic in the question")
    expression = max(pieces, key=len)
    return f"{expression} = {calculate(expression)}"


async def handle(request: Request) -> None:
    """Answer one question."""
    try:
        answer = answer_to(msgspec.json.decode(request.data, type=Question).query)
    except NotArithmetic as wrong:
        await request.respond_error(_UNPROCESSABLE, str(wrong))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        await request.respond_error(_BAD_REQUEST, 'send {"query": "7 * 6"}')
    else:
        await request.respond(msgspec.json.encode(Answer(answer)))


async def serve(client: Client) -> Service:
    """Register the calculator; it serves until the service is stopped or the client closed."""
    config = ServiceConfig(name=NAME, version="1.0.0", description="Arithmetic.", metadata={"neuraxis.specialist": "1"})
    service = await add_service(client, config)
    await service.add_endpoint(name="ask", subject=SUBJECT, handler=handle)
    return service


async def run(context: Context) -> None:
    """Serve until SIGTERM or Ctrl-C; raises ClickException if the broker takes the login away."""
    stop = asyncio.Event()

    async def on_closed() -> None:
        stop.set()

    async def on_error(error: Exception) -> None:
        click.echo(f"{NAME}: {error}", err=True)

    login = {"user": context.user, "password": context.password} if context.user else {}
    prefix = {"inbox_prefix": context.inbox_prefix} if context.inbox_prefix else {}
    client = await nats.connect(
        context.url, name=NAME, max_reconnect_attempts=-1, closed_cb=on_closed, error_cb=on_error, **login, **prefix
    )
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    service = await serve(client)
    for _ in range(2):  # nats-py's flush overtakes what still waits to be written, such as these subscriptions
        await client.flush()
    click.echo(f"{NAME} serves on {SUBJECT}", err=True)
    await stop.wait()
    if client.is_closed:
        raise click.ClickException(f"the broker has closed the connection for good: {client.last_error}")
    await service.stop()
    await client.close()


@click.command()
@click.option(
    "--context", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="A NATS CLI context file."
)
@click.option("--nats", "url", default="", help="A broker's address, instead.")
def main(context: Path | None, url: str) -> None:
    """Run the calculator."""
    found = msgspec.json.decode(context.read_bytes(), type=Context) if context is not None else Context()
    asyncio.run(run(msgspec.structs.replace(found, url=url) if url else found))


if __name__ == "__main__":
    sys.exit(main())
