"""The gateway's examinations of the log: an exchange decided again, an actor's state, and the known settings."""

import msgspec

from actors.actor_names import UnknownActor, check_actor_name
from actors.gateway.http.feedback.service import Lookup
from actors.gateway.http.records.examinations import Value
from actors.gateway.http.scopes import NotFound
from deploy.config.settings import LogSettings
from deploy.processes.examiner import Examiner
from events.jetstream import Access


class BrokerExaminations:
    """Answers questions about the log of a broker, each in a child process.

    Args:
        access: How the child processes connect to the broker.
        log: The settings that name the stream.
        lookup: Finds an exchange; raises NotFound for one that does not exist, before a process is started for it.
        within_s: Seconds within which a question is answered.
    """

    def __init__(self, access: Access, log: LogSettings, lookup: Lookup, *, within_s: float) -> None:
        self._access = access
        self._log = log
        self._lookup = lookup
        self._examiner = Examiner(within_s)
        self._known_settings = b""

    def shorten_waits(self, seconds: float) -> None:
        """Bring the deadlines of all open questions to ``seconds`` from now at most: this process is about to stop."""
        self._examiner.shorten_waits(seconds)

    async def what_if(self, exchange: str, settings: dict[str, Value]) -> bytes:
        """Return how an exchange would have ended under other settings."""
        ended = (await self._lookup(exchange)).ended_seq
        return await self._ask("DecideAgain", exchange=exchange, upto=ended, settings=settings)

    async def state(self, actor: str, key: str, at: int, path: str) -> bytes:
        """Return the state of an actor's partition at the sequence ``at``, or the part of it that ``path`` names.

        Raises:
            NotFound: there is no such actor.
        """
        try:
            check_actor_name(actor)  # before a process is started
        except UnknownActor as wrong:
            raise NotFound(str(wrong)) from wrong
        return await self._ask("ShowState", actor=actor, key=key, at=at, path=path)

    async def settings(self) -> bytes:
        """Return the settings that can be changed when a decision is made again; they are read once."""
        self._known_settings = self._known_settings or await self._ask("ListSettings")
        return self._known_settings

    async def _ask(self, kind: str, **question: object) -> bytes:
        # Written with the names of `deploy.replaying.log_questions`: importing that module would load every actor here.
        asked = {"access": self._access, "log": self._log, "question": {"type": kind, **question}}
        return await self._examiner.ask(msgspec.json.encode(asked))
