"""Sealing texts when they are appended to a log, and opening them when they are read."""

import asyncio
from collections.abc import Callable, Sequence

from events.errors import LogError, Unavailable
from events.log import Append, Record, Seal, Stored, Tail
from events.loggers import get_logger
from events.sealing.cipher import SessionKey
from events.sealing.keys import Keyring, NoKeys, key_name_in_headers
from events.sealing.sealed_texts import (
    KEY_DESTROYED,
    SEALED_HEADER,
    holds_words,
    location_to_seal,
    open_texts,
    sealed_record,
)
from events.warning_backoff import WarningBackoff
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.wording.personal import Location

_OPENED_AT_ONCE = 256
"""Messages opened before other tasks get their turn."""

_INPUT = topic_of(InputReceived)
_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0  # seconds
_logger = get_logger("neuraxis.sealing")


class Sealing:
    """Seals records and opens messages with the keys of a keyring.

    Unknown keys that a batch needs are fetched first; the rest is computation only.

    Attributes:
        keyring: Holds the keys.
        wait_warnings: Limits the warnings of all its readers that wait for keys.
    """

    def __init__(self, keyring: Keyring) -> None:
        self.keyring = keyring
        self.wait_warnings = WarningBackoff()

    async def seal(self, appends: Sequence[Append]) -> Sequence[Append]:
        """Return appends with the texts of their records sealed.

        Raises:
            Refused: a body cannot be read, so that its texts cannot be found.
            Unavailable: the keys cannot be had now; nothing was stored.
        """
        return [Append([await self._sealed(record) for record in append.records], append.fence) for append in appends]

    def sealed_now(self, record: Record) -> Record | None:
        """Return a record with its texts sealed; None if a key that this needs must be fetched or made first.

        Raises:
            Refused: the body cannot be read, so that its texts cannot be found.
        """
        location = location_to_seal(record.headers)
        if location is None:
            return record
        key = self.keyring.current(_name_of_key(record))
        return None if key is None and _needs_key(record, location) else sealed_record(record, location, key)

    async def _sealed(self, record: Record) -> Record:
        location = location_to_seal(record.headers)
        if location is None:
            return record
        name = _name_of_key(record)
        key = self.keyring.current(name)
        if key is None and _needs_key(record, location):
            key = await self._key_to_seal(name, create="ce-cause" not in record.headers)
        return sealed_record(record, location, key)

    async def _key_to_seal(self, name: str, *, create: bool) -> SessionKey | None:
        """Return a session's key; raises Unavailable whatever the store of keys says: the record was not sent."""
        try:
            return await self.keyring.to_seal(name, create=create)
        except Unavailable:
            raise
        except LogError as error:
            raise Unavailable(f"the session's key cannot be had now, so that nothing was sent: {error}") from error

    async def open(self, batch: Sequence[Stored]) -> Sequence[Stored]:
        """Return messages with their sealed texts opened; those without any are returned unchanged.

        Raises:
            LogError: the keys cannot be reached.
        """
        if not any(_is_sealed(stored) for stored in batch):
            return batch
        found = []
        for begin in range(0, len(batch), _OPENED_AT_ONCE):
            portion = batch[begin : begin + _OPENED_AT_ONCE]
            await self._fetch_keys(portion)
            found += [self._opened(stored) if _is_sealed(stored) else stored for stored in portion]
            if begin + _OPENED_AT_ONCE < len(batch):
                await asyncio.sleep(0)
        return found

    async def _fetch_keys(self, batch: Sequence[Stored]) -> None:
        keys = {_key_of(stored) for stored in batch if _is_sealed(stored)}
        # Repeated, since a key may change while another is fetched.
        while unknown := [
            (name, id) for name, id in keys if id != KEY_DESTROYED and not self.keyring.known(name, id)[0]
        ]:
            await self.keyring.fetch(unknown)

    def _opened(self, stored: Stored) -> Stored:
        return open_texts(stored, self.keyring.known(*_key_of(stored))[1])


class OpenedTail:
    """A tail whose messages have their sealed texts opened; implements ``events.log.Tail``.

    ``is_connected`` tells whether the broker that holds the keys can be reached at this moment.
    """

    def __init__(self, tail: Tail, sealing: Sealing, is_connected: Callable[[], bool]) -> None:
        self._tail = tail
        self._sealing = sealing
        self._is_connected = is_connected
        self._waiting: Sequence[Stored] = ()
        self._keyless_at: float | None = None  # since when the keys cannot be had (the event loop's time)

    @property
    def cut_off_s(self) -> float:
        """For how many seconds it could not read, or not get the keys of what it has read; see ``events.log.Tail``."""
        if self._keyless_at is None:
            return self._tail.cut_off_s
        return asyncio.get_running_loop().time() - self._keyless_at

    async def next(self) -> Sequence[Stored]:
        """Wait for the next messages, in stream order; never empty. While the keys cannot be reached, it waits on."""
        # Kept in the object, so that a caller who is cancelled while waiting loses no message.
        if not self._waiting:
            self._waiting = await self._tail.next()
        wait = _RETRY_FIRST
        while True:
            try:
                batch = await self._sealing.open(self._waiting)
            except LogError as error:
                # It begins only while the broker is there; while that one is away, it begins anew.
                if self._is_connected() == (self._keyless_at is None):
                    self._keyless_at = asyncio.get_running_loop().time()
                warnings = self._sealing.wait_warnings
                if warnings.is_due():
                    for_s = round(warnings.lasted_s, 1)
                    _logger.warning("keys_wait", error=error.code, detail=str(error), for_s=for_s)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MOST)
            else:
                self._sealing.wait_warnings.ended()
                self._waiting, self._keyless_at = (), None
                return batch

    async def close(self) -> None:
        """Stop reading and free the consumer."""
        await self._tail.close()


def closed_sealing() -> Sealing:
    """Return a sealing without keys: a placeholder stands for each sealed text."""
    return Sealing(Keyring(NoKeys()))


def _name_of_key(record: Record) -> str:
    return key_name_in_headers(record.headers.get("ce-agent", ""), record.headers["ce-session"])


def _needs_key(record: Record, location: Location) -> bool:
    # An input without words creates its session's key, too: events that follow from it may hold words.
    return record.headers.get("ce-type") == _INPUT or holds_words(record, location)


def _is_sealed(stored: Stored) -> bool:
    return SEALED_HEADER in stored.headers and stored.seal is Seal.AS_STORED


def _key_of(stored: Stored) -> tuple[str, str]:
    """Return the name and the id of the key that a message was sealed with."""
    headers = stored.headers
    return key_name_in_headers(headers.get("ce-agent", ""), headers.get("ce-session", "")), headers[SEALED_HEADER]
