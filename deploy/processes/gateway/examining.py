"""What a gateway has examined: an exchange decided again, an actor's state, and the known settings."""

import msgspec

from actors.gateway.http.feedback.service import Lookup
from actors.gateway.http.records.examining import Value
from deploy.config.settings import LogSettings
from deploy.processes.examiner import Examiner
from events.jetstream import Access


class BrokerExaminations:
    """Has questions about the log of a broker answered, by processes of their own.

    Args:
        access: How they connect to the broker.
        log: Which stream it is.
        lookup: Raises NotFound for an exchange that there is none of, before a process is started for it.
        within_s: Seconds that an answer may take.
    """

    def __init__(self, access: Access, log: LogSettings, lookup: Lookup, *, within_s: float) -> None:
        self._access = access
        self._log = log
        self._lookup = lookup
        self._examiner = Examiner(within_s)
        self._settings = b""

    def hurry(self, seconds: float) -> None:
        """Let those who wait do so for ``seconds`` more at most: this process is to stop."""
        self._examiner.hurry(seconds)

    async def what_if(self, exchange: str, settings: dict[str, Value]) -> bytes:
        """Return what would have become of an exchange under other settings."""
        ended = (await self._lookup(exchange)).ended_seq
        return await self._ask("DecideAgain", exchange=exchange, upto=ended, settings=settings)

    async def state(self, actor: str, key: str, at: int, path: str) -> bytes:
        """Return what an actor's partition knew at a sequence."""
        return await self._ask("ShowState", actor=actor, key=key, at=at, path=path)

    async def settings(self) -> bytes:
        """Return the settings that a decision may be made again with; they are looked up once."""
        self._settings = self._settings or await self._ask("ListSettings")
        return self._settings

    async def _ask(self, kind: str, **question: object) -> bytes:
        # By the names of `deploy.replaying.questions`, which would load every actor here.
        asked = {"access": self._access, "log": self._log, "question": {"type": kind, **question}}
        return await self._examiner.ask(msgspec.json.encode(asked))
