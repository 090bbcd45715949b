"""Sealing texts when they are appended to a log, and opening them when they are read."""

import asyncio
from collections.abc import Sequence

from events.errors import LogError
from events.log import Append, Record, Seal, Stored, Tail
from events.loggers import get_logger
from events.sealing.bodies import GONE, HEADER, holds_words, open_texts, part_to_seal, sealed_record
from events.sealing.keys import Keyring, NoKeys, key_name_in_headers
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived

_SLICE = 256
"""Messages opened before other tasks get their turn."""

_INPUT = topic_of(InputReceived)
_RETRY_FIRST, _RETRY_MOST = 0.05, 1.0
_logger = get_logger("neuraxis.sealing")


class Sealing:
    """Seals records and opens messages with the keys of a keyring.

    The keys that a batch needs and the process does not know are fetched before it; all else is plain computing.
    """

    def __init__(self, keyring: Keyring) -> None:
        self.keyring = keyring

    async def seal(self, appends: Sequence[Append]) -> Sequence[Append]:
        """Return appends with the texts of their records sealed.

        Raises:
            Refused: a body cannot be read, so that its texts cannot be found.
            LogError: the keys cannot be reached; nothing was stored.
        """
        return [Append([await self._sealed(record) for record in append.records], append.fence) for append in appends]

    async def _sealed(self, record: Record) -> Record:
        headers = record.headers
        part = part_to_seal(headers)
        if part is None:
            return record
        name = key_name_in_headers(headers.get("ce-agent", ""), headers["ce-session"])
        key = self.keyring.current(name)
        # An input without words begins its session's key as well: what follows from it may hold some.
        if key is None and (headers.get("ce-type") == _INPUT or holds_words(record, part)):
            key = await self.keyring.to_seal(name, create="ce-cause" not in headers)
        return sealed_record(record, part, key)

    async def open(self, batch: Sequence[Stored]) -> Sequence[Stored]:
        """Return messages with their texts opened, those without sealed ones as they are.

        Raises:
            LogError: the keys cannot be reached.
        """
        if not any(_is_sealed(stored) for stored in batch):
            return batch
        found = []
        for begin in range(0, len(batch), _SLICE):
            portion = batch[begin : begin + _SLICE]
            await self._know(portion)
            found += [self._opened(stored) if _is_sealed(stored) else stored for stored in portion]
            if begin + _SLICE < len(batch):
                await asyncio.sleep(0)
        return found

    async def _know(self, batch: Sequence[Stored]) -> None:
        locks = {_lock_of(stored) for stored in batch if _is_sealed(stored)}
        # Again, should one change while another is fetched.
        while unknown := [(name, id) for name, id in locks if id != GONE and not self.keyring.known(name, id)[0]]:
            await self.keyring.fetch(unknown)

    def _opened(self, stored: Stored) -> Stored:
        return open_texts(stored, self.keyring.known(*_lock_of(stored))[1])


class OpenedTail:
    """A reading whose messages come out opened; implements ``events.log.Tail``."""

    def __init__(self, tail: Tail, sealing: Sealing) -> None:
        self._tail = tail
        self._sealing = sealing
        self._waiting: Sequence[Stored] = ()

    async def next(self) -> Sequence[Stored]:
        """Wait for the next messages, in stream order; never empty. While the keys cannot be reached, it waits on."""
        # Kept, so that a caller who gives up waiting loses nothing.
        if not self._waiting:
            self._waiting = await self._tail.next()
        wait = _RETRY_FIRST
        while True:
            try:
                batch = await self._sealing.open(self._waiting)
            except LogError as error:
                _logger.warning("keys_wait", error=error.code, detail=str(error), seconds=wait)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _RETRY_MOST)
            else:
                self._waiting = ()
                return batch

    async def close(self) -> None:
        """Stop reading and free the consumer."""
        await self._tail.close()


def closed_sealing() -> Sealing:
    """Return a sealing without keys: it shows that texts are there, and none of them."""
    return Sealing(Keyring(NoKeys()))


def _is_sealed(stored: Stored) -> bool:
    return HEADER in stored.headers and stored.seal is Seal.AS_STORED


def _lock_of(stored: Stored) -> tuple[str, str]:
    """Return the name and the id of the key that a message was sealed with."""
    headers = stored.headers
    return key_name_in_headers(headers.get("ce-agent", ""), headers.get("ce-session", "")), headers[HEADER]
