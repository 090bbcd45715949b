"""A client of NATS that shares no code with ours: its text protocol over a socket, as any language could speak it."""

import json
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

DEADLINE_S = 20.0


class Heard(NamedTuple):
    """A message; ``status`` is of its headers' first line, empty for ordinary ones."""

    subject: str
    reply: str
    status: str
    body: bytes


class Denied(Exception):
    """The server said that something is not permitted."""


class Wire:
    """A connection with a login file's address, user and password; one call at a time."""

    def __init__(self, login: Path) -> None:
        self.login: dict[str, str] = json.loads(login.read_text())
        host, _, port = self.login["url"].rpartition("/")[2].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), DEADLINE_S)
        self._buffer = b""
        self._line()  # INFO
        hello = {"user": self.login["user"], "pass": self.login["password"], "verbose": False, "pedantic": False}
        self._send("CONNECT " + json.dumps({**hello, "headers": True, "protocol": 1, "lang": "none", "version": "0"}))
        self._subscriptions = 0
        self._inbox = f"{self.login['inbox_prefix']}.test"
        self.subscribe(f"{self._inbox}.>")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._socket.close()

    def subscribe(self, subject: str) -> None:
        """Subscribe; raises Denied."""
        self._subscriptions += 1
        self._send(f"SUB {subject} {self._subscriptions}")
        self.settle()

    def publish(self, subject: str, body: bytes = b"", reply: str = "") -> None:
        """Publish; raises Denied."""
        self._publish(subject, body, reply)
        self.settle()

    def settle(self) -> None:
        """Wait until the server took all that was sent; raises Denied. Only while no message is expected."""
        self._send("PING")
        denied = ""
        while (line := self._line()) != "PONG":
            if line.startswith("-ERR"):
                denied = line
            elif line.startswith(("MSG", "HMSG")):
                self._message(line)
        if denied:
            raise Denied(denied)

    def request(self, subject: str, body: Any = None) -> Heard:
        """Send a request, JSON where it has a body; return the answer. Raises Denied."""
        reply = f"{self._inbox}.{time.monotonic_ns()}"
        self._publish(subject, b"" if body is None else json.dumps(body).encode(), reply)
        return self.hear(reply)

    def api(self, subject: str, body: Any = None) -> dict[str, Any]:
        """Ask JetStream; return its answer."""
        answer: dict[str, Any] = json.loads(self.request(subject, body).body)
        return answer

    def hear(self, answering: str) -> Heard:
        """Return the next message that answers a reply subject, or is of the log. Raises Denied."""
        while True:
            line = self._line()
            if line.startswith("-ERR"):
                raise Denied(line)
            if line.startswith(("MSG", "HMSG")):
                heard = self._message(line)
                # A message of the log keeps its own subject; what else comes may be a late word on an older request.
                if heard.subject == answering or heard.reply.startswith("$JS.ACK."):
                    return heard

    def _publish(self, subject: str, body: bytes, reply: str) -> None:
        head = " ".join(part for part in ("PUB", subject, reply, str(len(body))) if part)
        self._socket.sendall(f"{head}\r\n".encode() + body + b"\r\n")

    def _message(self, line: str) -> Heard:
        kind, subject, _, *rest = line.split()
        sizes = 2 if kind == "HMSG" else 1
        reply = rest[0] if len(rest) > sizes else ""
        total = int(rest[-1])
        head = int(rest[-2]) if kind == "HMSG" else 0
        content = self._take(total + 2)[:total]
        status = content[:head].split(b"\r\n")[0].decode().removeprefix("NATS/1.0").strip()
        return Heard(subject, reply, status, content[head:])

    def _send(self, line: str) -> None:
        self._socket.sendall(f"{line}\r\n".encode())

    def _line(self) -> str:
        while True:
            line, found, rest = self._buffer.partition(b"\r\n")
            if found:
                self._buffer = rest
                if line == b"PING":
                    self._send("PONG")
                    continue
                return line.decode()
            self._more()

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _more(self) -> None:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionError("the server hung up")
        self._buffer += received
