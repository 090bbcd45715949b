"""The client for programs without an event loop."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from neuraxis import calls
from neuraxis.calls import Call
from neuraxis.deadline import Deadline
from neuraxis.errors import Forbidden, NeuraxisError
from neuraxis.events import ALERTS, Event, topic_of
from neuraxis.following import EVENTS_PATH, SILENCE_S, STREAM_ENDED, Following, end_of_ledger, end_of_log
from neuraxis.models import Answer, Explanation, Feedback, Input, Layer, Page, Verdict
from neuraxis.server import FOLDER, find_server

T = TypeVar("T")


class Client:
    """Calls a Neuraxis server. Close it, or use it in a ``with`` block. Threads may share one client.

    Args:
        base_url: The server's address, such as ``http://127.0.0.1:8642``. Default: ``NEURAXIS_URL``, or else the set
            that runs in ``data``.
        api_key: The API key. Default: ``NEURAXIS_API_KEY``, or else none.
        timeout: Seconds that a call may take in total, including its repeats and the pauses before them.
        retries: How often a failed call is sent again, if a repeat cannot have a second effect.
        data: The data folder of a set (the processes that ``neuraxis up`` runs) on this machine.
        transport: The httpx transport that carries requests, for tests.

    Raises:
        Misconfigured: nothing says where the server is; or the address, another argument, or a proxy or certificate of
            the environment is invalid.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        data: Path | str = FOLDER,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        calls.check_limits(timeout, retries)
        self._server = find_server(base_url, api_key, data)
        self._timeout = timeout
        self._retries = retries
        self._deadline = Deadline()
        with calls.usable_environment():
            self._http = httpx.Client(**calls.http_options(self._server, timeout), transport=transport)

    def __repr__(self) -> str:
        return f"Client({self._server.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def check(
        self,
        text: str = "",
        *,
        layers: Sequence[Layer] = (),
        documents: Sequence[str] = (),
        tool_results: Sequence[str] = (),
        context: str = "",
        session: str = "",
        agent: str = "",
        user: str = "",
    ) -> Verdict:
        """Have the guards check an input; nobody answers it. A refusal is a verdict, not an error.

        Args:
            text: What the user says.
            layers: The other parts of the prompt, each in its role.
            documents: Parts of the prompt that were retrieved.
            tool_results: Parts of the prompt that tools returned.
            context: The kind of situation, a name of your own; precedents (earlier inputs whose outcome is recorded) of
                the same kind are taken to be more similar.
            session: The session of the input; without one it is judged by itself.
            agent: The agent that it is for; default: the server's.
            user: Who asks, if the server has an agent for each user.
        """
        one = Input(
            text=text, layers=layers, documents=documents, tool_results=tool_results, context=context,
            session=session, agent=agent,
        )  # fmt: skip
        return self._call(calls.check(one, user))

    def check_all(self, inputs: Sequence[Input], *, user: str = "") -> tuple[Verdict, ...]:
        """Have several inputs checked in one request, 128 at most; return their verdicts in their order."""
        return self._call(calls.check_all(inputs, user))

    def ask(self, question: str | Sequence[Mapping[str, Any]], *, session: str = "", user: str = "") -> Answer:
        """Ask Neuraxis itself: a text, or the messages of a conversation as OpenAI's clients write them.

        Without a ``session`` the server finds the conversation by its messages so far.
        """
        return self._call(calls.ask(question, session, user))

    def why(self, exchange: str) -> Explanation:
        """Return why an exchange ended as it did. Needs a key with the scope ``read``, if the server has keys."""
        return self._call(calls.why(exchange))

    def exchanges(
        self,
        *,
        agent: str = "",
        session: str = "",
        stage: str = "",
        action: str = "",
        reason: str = "",
        mode: str = "",
        before: int = 0,
        limit: int = 50,
    ) -> Page:
        """Return a page of exchanges, the latest first; ``before=page.before`` gets the next page.

        Needs a key with the scope ``read``, if the server has keys.
        """
        wanted = calls.exchanges(
            agent=agent, session=session, stage=stage, action=action, reason=reason, mode=mode, before=before,
            limit=limit,
        )  # fmt: skip
        return self._call(wanted)

    def feedback(
        self, exchange: str, *, reward: float | None = None, harmful: bool | None = None, comment: str = ""
    ) -> Feedback:
        """Give feedback on an exchange: a ``reward`` from -1 to 1, whether it was harmful, a comment; at least one of
        them.

        If it was harmful and the key is an operator's, inputs like that one are rejected from then on.
        """
        return self._call(calls.feedback(exchange, reward, harmful, comment))

    def events(
        self, topic: str = ">", *, after: int | Event | None = None, words: bool = False, patience: float = 60.0
    ) -> Iterator[Event]:
        """Yield the events of a public subject as they come, each once and in order, without end.

        After a broken connection it continues where it was. Needs a key with the scope ``read``, if the server has
        keys.

        Args:
            topic: The subject; ``*`` and ``>`` are wildcards, the root (``forged_id.``) may be left out.
            after: Begin after this sequence, or after the last event you processed; None: with new events. Given
                the event, an error (``log_cut``) says if the log has lost it, and given its sequence to another.
            words: Include people's words, which are hidden otherwise.
            patience: Seconds without a connection after which the failure is raised.
        """
        begin = self._end_of_log() if after is None else after
        following = Following(topic_of(topic), begin, words=words, patience_s=patience)
        while True:
            try:
                yield from self._follow(following)
                failed: NeuraxisError = STREAM_ENDED
            except NeuraxisError as wrong:
                failed = wrong
            time.sleep(following.pause_after(failed))

    def alerts(self, *, after: int | Event | None = None, patience: float = 60.0) -> Iterator[Event]:
        """Yield alerts as they come, each as the ``alert`` of its event; otherwise as :meth:`events` does."""
        return self.events(ALERTS, after=after, patience=patience)

    def _follow(self, following: Following) -> Iterator[Event]:
        opening_s = following.opening_s
        waits = httpx.Timeout(min(self._timeout, opening_s), read=SILENCE_S)
        try:
            with ExitStack() as open_things:
                with self._deadline.until(time.monotonic() + opening_s):
                    answer = open_things.enter_context(
                        self._http.stream(
                            "GET", EVENTS_PATH, params=following.query, headers=following.headers(), timeout=waits,
                            extensions={"trace": self._deadline.watch},
                        )
                    )  # fmt: skip
                    if not answer.is_success:
                        body = bytearray()
                        for piece in answer.iter_bytes():
                            body += piece
                            if len(body) > calls.MOST_ERROR_BYTES:
                                break
                        calls.raise_for(answer, bytes(body))
                calls.check_stream(answer)
                for piece in answer.iter_bytes():
                    yield from following.take(piece)
        except httpx.HTTPError as wrong:
            raise calls.unreached(self._server.url, wrong, opening_s) from wrong

    def _end_of_log(self) -> int:
        try:
            return self._call(end_of_log())
        except Forbidden:  # a key of one agent may not read the overview
            return self._call(end_of_ledger())

    def _call(self, call: Call[T]) -> T:
        end, attempt = time.monotonic() + self._timeout, 0
        while True:
            try:
                return self._send(call, end)
            except NeuraxisError as failed:
                pause = calls.pause_before(call, failed, attempt)
                if pause is None or attempt == self._retries or time.monotonic() + pause >= end:
                    raise
            time.sleep(pause)
            attempt += 1

    def _send(self, call: Call[T], end: float) -> T:
        left, sent, body = max(end - time.monotonic(), 0.001), call.content(), bytearray()
        try:
            with (
                self._deadline.until(end),
                self._http.stream(
                    call.method, call.path, params=call.query, content=sent, headers=call.headers, timeout=left,
                    extensions={"trace": self._deadline.watch},
                ) as answer,
            ):  # fmt: skip
                for piece in answer.iter_bytes():
                    body += piece
                    calls.check_length(call, len(body))
        except httpx.HTTPError as wrong:
            raise calls.unreached(self._server.url, wrong, self._timeout) from wrong
        return calls.result_of(call, answer, bytes(body))
