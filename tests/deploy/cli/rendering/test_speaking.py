"""A model's words on a terminal while it speaks, and the answer behind them."""

import asyncio
from typing import Any

import msgspec
import pytest

from actors.gateway import AnswerPiece
from actors.llm.calling import SentPiece
from deploy.cli.asking.run_exchange import show
from deploy.cli.asking.streamed_answer import StreamedAnswer
from deploy.cli.rendering.decision import exchange_of
from deploy.client import client_on
from events.jetstream import Access, Connection, JetStreamLog
from schemas.catalogue import entry_of
from schemas.event import encode_event
from schemas.vocabulary.responder import ResponseEmitted
from tests.broker import Broker, taken_up

END = entry_of(ResponseEmitted).sample


def encoded(index: int, text: str, *, attempt: int = 1) -> bytes:
    """A piece as the effector encodes it."""
    return msgspec.json.encode(SentPiece(request="r", exchange="x", attempt=attempt, index=index, text=text))


def piece(index: int, text: str, *, attempt: int = 1) -> AnswerPiece:
    return AnswerPiece(request="r", attempt=attempt, index=index, text=text, done=False)


def spoken(*heard: AnswerPiece) -> tuple[str, StreamedAnswer]:
    written: list[str] = []
    speaker = StreamedAnswer(written.append, 80)
    for each in heard:
        speaker.take(each)
    speaker.end()
    return "".join(written), speaker


def shown(capsys: pytest.CaptureFixture[str], answer: str, spoken: str) -> str:
    """Return what is printed of an answer behind what was spoken, without the decision below it."""
    end = msgspec.structs.replace(END, response=answer)
    speaker = StreamedAnswer(lambda text: print(text, end=""), 80)
    if spoken:
        speaker.take(piece(0, spoken))
    show(exchange_of("x", "ann", "s", end, (), 1.0), as_json=False, streamed=speaker)
    return capsys.readouterr().out.partition("DELIBERATIVE")[0]


def test_pieces_are_written_as_they_come() -> None:
    written, speaker = spoken(piece(0, "Lima is"), piece(1, " the capital."))
    assert written == speaker.spoken == "Lima is the capital."


def test_a_model_asked_again_begins_again_on_a_line_of_its_own() -> None:
    written, speaker = spoken(piece(0, "Lim"), piece(0, "Lima.", attempt=2))
    assert written == "Lim [...]\nLima."
    assert speaker.spoken == "Lima."


def test_nothing_is_written_past_a_missing_piece_or_twice() -> None:
    written, _ = spoken(piece(0, "Lima"), piece(0, "Lima"), piece(2, "capital"), piece(3, "."))
    assert written == "Lima"


def test_nothing_that_a_terminal_obeys_is_written() -> None:
    assert spoken(piece(0, "red \x1b[31m\n\u202e!"))[0] == "red  [31m\n !"


SENTENCE = "Answered by the composer with an answer, because the router chose RESPOND.\n"


@pytest.mark.parametrize(
    ("spoken", "printed"),
    [
        ("", f"{SENTENCE}Lima is the capital.\n"),
        ("Lima is", f"Lima is the capital.\n{SENTENCE}"),
        ("Lima is the capital.", f"Lima is the capital.\n{SENTENCE}"),
        ("Lima is the capital. \n", f"Lima is the capital. \n\n{SENTENCE}"),
        ("Cusco", f"Cusco\n(in the end) Lima is the capital.\n{SENTENCE}"),
    ],
)
def test_the_answer_completes_what_was_spoken(capsys: pytest.CaptureFixture[str], spoken: str, printed: str) -> None:
    assert shown(capsys, "Lima is the capital.", spoken) == printed


def test_pieces_come_to_the_inbox_of_the_caller_and_all_else_is_passed_over(broker: Broker) -> None:
    async def listen() -> Any:
        theirs = await Connection.open(Access(servers=broker.url))
        log = await JetStreamLog.connect(Access(servers=broker.url))
        written: asyncio.Queue[str] = asyncio.Queue()
        others = (encode_event(END), b"{", b"\xff", b"[]", b'{"text": "Lima."}')
        try:
            async with (
                client_on(log) as client,
                client.receiving_pieces(StreamedAnswer(written.put_nowait, 80).take) as inbox,
            ):
                await taken_up(log.connection.nc)
                for data in (*others, *(encoded(place, text) for place, text in enumerate(("Lima", " is", " it.")))):
                    await theirs.publish(inbox, data)
                async with asyncio.timeout(20):
                    return inbox, [await written.get() for _ in range(3)]
        finally:
            await theirs.close()
            await log.close()

    inbox, heard = asyncio.run(listen())
    assert inbox.startswith("_INBOX.")
    assert "".join(heard) == "Lima is "
