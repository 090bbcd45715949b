"""The gateway's examinations of the log: an exchange decided again, an actor's state, and the known settings."""

from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

import msgspec

from actors.actor_names import UnknownActor, check_actor_name
from actors.gateway.external_events import InvalidField
from actors.gateway.http.feedback.service import Lookup
from actors.gateway.http.records.examinations import Value
from actors.gateway.http.scopes import NotFound
from deploy.config.loading import section_names
from deploy.config.settings import LogSettings
from deploy.processes.examiner import MOST_BYTES, Examiner
from events.jetstream import Access
from schemas.intake.strict import did_you_mean

_MOST_REFUSED = 256
"""How many wrong settings are remembered."""


class BrokerExaminations:
    """Answers questions about the log of a broker, each in a child process.

    Args:
        access: How the child processes connect to the broker.
        log: The settings that name the stream.
        lookup: Finds an exchange; raises NotFound for one that does not exist, before a process is started for it.
        within_s: Seconds within which a question is answered.
        ledger: The ledger file, which holds what was removed from the log's beginning, if it is on this machine.
    """

    def __init__(
        self, access: Access, log: LogSettings, lookup: Lookup, *, within_s: float, ledger: Path | None = None
    ) -> None:
        self._access = access
        self._log = log
        self._lookup = lookup
        self._ledger = ledger
        self._examiner = Examiner(within_s)
        self._searches = Examiner(within_s)  # apart, so that many made-up ids leave room for other questions
        self._known_settings = b""
        self._refused: OrderedDict[bytes, InvalidField] = OrderedDict()  # by a hash of the exchange and the settings

    def shorten_waits(self, seconds: float) -> None:
        """Bring the deadlines of all open questions to ``seconds`` from now at most: this process is about to stop."""
        self._examiner.shorten_waits(seconds)
        self._searches.shorten_waits(seconds)

    async def what_if(self, exchange: str, settings: dict[str, Value]) -> bytes:
        """Return how an exchange would have ended under other settings.

        Settings without a section of that name, and those that were found wrong before for this exchange, are refused
        at once: a process that knows them all takes seconds to start.
        """
        _check_sections(settings)
        key = sha256(msgspec.json.encode((exchange, settings), order="deterministic")).digest()
        if (known := self._refused.get(key)) is not None:
            raise InvalidField(known.field, str(known), known.code)
        ended = (await self._lookup(exchange)).ended_seq
        try:
            return await self._ask("DecideAgain", exchange=exchange, upto=ended, settings=settings)
        except InvalidField as wrong:
            if wrong.field == "settings" and ended:  # the recorded settings of an open exchange are not known yet
                self._refused[key] = wrong
                if len(self._refused) > _MOST_REFUSED:
                    self._refused.popitem(last=False)
            raise

    async def why(self, exchange: str) -> bytes:
        """Search all of the log for an exchange, and return why it ended as it did.

        Raises:
            NotFound, LogError: see ``Examiner.ask``.
            InvalidField: the answer is too long, however often one asks.
        """
        try:
            return await self._ask("Explain", self._searches, exchange=exchange)
        except InvalidField as wrong:
            told = f"the explanation has more than {MOST_BYTES:,} bytes: `neuraxis why {exchange}` prints it"
            raise InvalidField("exchange", told) from wrong

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

    async def _ask(self, kind: str, examiner: Examiner | None = None, **question: object) -> bytes:
        # Written with the names of `deploy.replaying.log_questions`: importing that module would load every actor here.
        ledger = str(self._ledger) if self._ledger is not None else ""
        asked = {"access": self._access, "log": self._log, "question": {"type": kind, **question}, "ledger": ledger}
        return await (examiner or self._examiner).ask(msgspec.json.encode(asked))


def _check_sections(settings: dict[str, Value]) -> None:
    """Raise InvalidField for a setting of an unknown section, as the process that decides again would."""
    known = section_names()
    for key in settings:
        section, dot, _ = key.partition(".")
        if not dot:
            raise InvalidField("settings", f"{key}: write SECTION.KEY, such as router.base_scores.RESPOND")
        if section.lower() not in known:
            raise InvalidField(
                "settings",
                f"setting {key}: there is no section {section.lower()!r}: {did_you_mean(section.lower(), known)}",
            )
