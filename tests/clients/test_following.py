"""Events by HTTP: each once and in order, however the bytes are cut and the connection breaks."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import islice

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuraxis
from neuraxis import AsyncClient, Client, Event
from neuraxis.sse import Decoder

URL = "http://127.0.0.1:8642"


def row(seq: int, words: str = "", log: str = "one") -> str:
    told = {
        "seq": seq,
        "id": f"{log}-{seq}",
        "topic": "forged_id.reflex.passed",
        "data": {"topic": "forged_id.reflex.passed", "words": words},
    }
    return json.dumps(told, ensure_ascii=False)


def sent(*seqs: int, log: str = "one") -> bytes:
    return "".join(f"event: forged_id.x\r\nid: {seq}\r\ndata: {row(seq, log=log)}\r\n\r\n" for seq in seqs).encode()


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), max_size=4), st.data())
def test_messages_are_the_same_however_their_bytes_are_cut(words: list[str], data: st.DataObject) -> None:
    whole = b": nothing new\r\n\r\n" + b"".join(
        f"id: {seq}\r\ndata: {row(seq, word)}\r\n\r\n".encode() for seq, word in enumerate(words)
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    decoder, found = Decoder(), []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += decoder.feed(whole[begin:end])
    assert [json.loads(each.data)["data"]["words"] for each in found] == words
    assert [each.id for each in found] == [str(seq) for seq in range(len(words))]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_message_may_have_several_lines_and_an_unended_one_is_none(end: str) -> None:
    decoder = Decoder()
    found = [*decoder.feed(f"data: a{end}data:b{end}id: 7{end}{end}data: c{end}".encode())]
    assert [(each.id, each.data) for each in found] == [("7", "a\nb")]


class Breaking:
    """A server whose streams end after some events, and that is away now and then."""

    def __init__(self, *answers: bytes | int) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/overview":
            return httpx.Response(200, json={"recorded": {}, "now": {"head": 4}})
        self.asked.append(request)
        answer = self.answers.pop(0)
        if answer == 0:
            raise httpx.ConnectError("refused")
        if isinstance(answer, int):
            return httpx.Response(answer, json={"code": "said", "message": "said"}, headers={"retry-after": "0"})
        return httpx.Response(200, stream=Cut(answer), headers={"content-type": "text/event-stream; charset=utf-8"})


class Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that breaks off."""

    def __init__(self, told: bytes) -> None:
        self._told = told

    def __iter__(self) -> Iterator[bytes]:
        yield self._told
        raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._told
        raise httpx.ReadError("cut")


def test_a_key_that_may_not_see_the_overview_follows_from_where_its_lists_end() -> None:
    def serve(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/api/overview":
                return httpx.Response(403, json={"code": "forbidden", "message": "of all agents"})
            case "/api/exchanges":
                return httpx.Response(200, json={"exchanges": [], "before": 0, "head": 4})
        assert request.headers["last-event-id"] == "4"
        return httpx.Response(200, content=sent(5), headers={"content-type": "text/event-stream"})

    async def first() -> int:
        async with neuraxis.AsyncClient(URL, transport=httpx.MockTransport(serve)) as client:
            return (await anext(client.events())).seq

    with neuraxis.Client(URL, transport=httpx.MockTransport(serve)) as client:
        assert next(client.events()).seq == 5
    assert asyncio.run(first()) == 5


BROKEN = (sent(5, 6) + b"data: {", 0, 503, sent(6, 7), sent(7, 8))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuraxis.following.Following.pause_after", lambda self, failed: _raise_lasting(failed))


def _raise_lasting(failed: neuraxis.NeuraxisError) -> float:
    if isinstance(failed, neuraxis.Forbidden | neuraxis.BadAnswer) or failed.code == "log_cut":
        raise failed
    return 0.0


def test_a_reading_goes_on_where_it_was_and_gives_each_event_once() -> None:
    server = Breaking(*BROKEN)
    with Client(URL, transport=httpx.MockTransport(server)) as client:
        found = [each.seq for each in islice(client.events("reflex.*"), 4)]
    assert found == [5, 6, 7, 8]
    assert server.asked[0].url.params["topic"] == "forged_id.reflex.*"
    # The last event is asked for again: it shows whether this is still the same log.
    assert [each.headers["last-event-id"] for each in server.asked] == ["4", "5", "5", "5", "6"]


def test_the_asynchronous_reading_does_the_same() -> None:
    server = Breaking(*BROKEN)

    async def act() -> list[Event]:
        found: list[Event] = []
        async with (
            AsyncClient(URL, transport=httpx.MockTransport(server)) as client,
            aclosing(client.events("reflex.*", after=4)) as events,
        ):
            async for event in events:
                found.append(event)
                if len(found) == 4:
                    break
        return found

    found = asyncio.run(act())
    assert [each.seq for each in found] == [5, 6, 7, 8]
    assert found[0].data == {"words": ""}


@pytest.mark.parametrize(
    ("before", "then"),
    [
        pytest.param([sent(5, 6)], sent(6, 7, log="another"), id="its_sequence_was_given_again"),
        pytest.param([sent(5, 6)], sent(7), id="nothing_was_given_its_sequence"),
        pytest.param([], sent(6, 7, log="another"), id="before_this_program_was_started"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_log_that_has_lost_the_last_event_ends_the_reading_although_it_has_grown_past_it(
    before: list[bytes], then: bytes, is_async: bool
) -> None:
    """What got the sequences of lost events would be passed over in silence."""
    transport = httpx.MockTransport(Breaking(*before, then))
    after: int | Event = 4 if before else Event(seq=6, topic="forged_id.reflex.passed", id="one-6")

    async def follow_asynchronously() -> None:
        async with AsyncClient(URL, transport=transport) as client, aclosing(client.events(after=after)) as events:
            assert [event.seq async for event in events] == []

    def follow() -> None:
        with Client(URL, transport=transport) as client:
            assert list(client.events(after=after)) == []

    with pytest.raises(neuraxis.NeuraxisError, match="after the event of sequence 6: the log has lost it") as cut:
        asyncio.run(follow_asynchronously()) if is_async else follow()
    assert cut.value.code == "log_cut"


@pytest.mark.parametrize(
    ("after", "asked"),
    [
        (Event(seq=6, topic="forged_id.reflex.passed", id="one-6"), "5"),
        (Event(seq=6, topic="forged_id.reflex.passed"), "5"),  # one that could not be read has no id
        (Event(seq=6, topic="forged_id.alert.critical.breaker", id="x"), "6"),  # it does not come on this subject
        (6, "6"),
    ],
)
def test_a_reading_begins_after_the_last_event_of_an_earlier_one(after: Event | int, asked: str) -> None:
    server = Breaking(sent(6, 7) if asked == "5" else sent(7))
    with Client(URL, transport=httpx.MockTransport(server)) as client:
        assert next(client.events("reflex.>", after=after)).seq == 7
    assert server.asked[0].headers["last-event-id"] == asked


def test_what_waiting_does_not_help_is_raised() -> None:
    with (
        Client(URL, transport=httpx.MockTransport(Breaking(sent(5), 403))) as client,
        pytest.raises(neuraxis.Forbidden),
    ):
        list(client.events(after=4))


def test_a_page_that_is_no_stream_is_said_to_be_none() -> None:
    page = httpx.Response(200, text="<h1>hello</h1>")
    with (
        Client(URL, transport=httpx.MockTransport(lambda _: page)) as client,
        pytest.raises(neuraxis.BadAnswer, match="base URL"),
    ):
        list(client.events(after=4))


def test_a_long_line_costs_no_more_in_many_pieces_than_in_one() -> None:
    def seconds(piece: int, size: int = 4_000_000) -> float:
        decoder, begun = Decoder(), time.process_time()
        for _ in range(size // piece):
            assert not [*decoder.feed(b"x" * piece)]
        return time.process_time() - begun

    assert seconds(200) < 1, "joining at each piece copies 40 GB"
    decoder = Decoder()
    found = [message for byte in b"data: a\r\ndata: b\r\r\n" for message in decoder.feed(bytes([byte]))]
    assert [each.data for each in found] == ["a\nb"]


def test_an_event_without_an_end_is_given_up() -> None:
    decoder, line = Decoder(), b"data: " + b"x" * 1_000_000 + b"\n"
    assert not [message for _ in range(16) for message in decoder.feed(line)]
    with pytest.raises(neuraxis.BadAnswer, match="more than"):
        list(decoder.feed(line))


@pytest.mark.parametrize("patience", [float("nan"), -1.0])
def test_a_patience_that_is_no_time_is_refused(patience: float) -> None:
    server = httpx.MockTransport(lambda _: httpx.Response(500))
    with Client(URL, transport=server) as client, pytest.raises(neuraxis.Misconfigured, match="patience"):
        next(client.events(after=0, patience=patience))


class Endless(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body without an end."""

    given = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.given += 1
            yield b"x" * 16_384

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


@pytest.mark.parametrize("is_async", [False, True])
def test_the_body_of_a_refusal_is_not_read_without_bounds(is_async: bool) -> None:
    endless = Endless()
    transport = httpx.MockTransport(lambda _: httpx.Response(403, stream=endless))

    async def follow_asynchronously() -> None:
        async with AsyncClient(URL, transport=transport) as client, aclosing(client.events(after=0)) as events:
            await anext(events)

    def follow() -> None:
        with Client(URL, transport=transport) as client:
            next(client.events(after=0))

    with pytest.raises(neuraxis.Forbidden, match="status 403"):
        asyncio.run(follow_asynchronously()) if is_async else follow()
    assert endless.given <= 6
