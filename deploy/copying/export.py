"""Exporting recorded events as lines of CloudEvents or as a bundle; people's words are kept as stored, or hashed."""

from collections.abc import AsyncIterator, Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from events.bundles import Manifest, Redaction, redacted, to_line, write_bundle
from events.bundles.archive import FORMAT
from events.errors import LedgerDamaged, Misconfigured
from events.ledger.checking.chain import GENESIS
from events.ledger.rows import link_row, to_row
from events.log import Stored
from events.losses import Losses
from events.replay.presence_checks import NothingFound, span_of
from events.replay.run_replay import END, Point
from events.replay.sources import Source, exchange_of
from schemas.envelope import decode_headers
from schemas.errors import UndecodableEvent
from schemas.event import topic_of
from schemas.subjects import EVERYTHING, topic_filter
from schemas.vocabulary.responder import ResponseEmitted

_END_FILTER = topic_filter(topic_of(ResponseEmitted))


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which events to export; empty fields select all. ``filter`` is over stored subjects.

    ``first`` is the first sequence, ``upto`` the last sequence or time.
    """

    filter: str = EVERYTHING
    first: int = 1
    upto: Point = END
    agent: str = ""
    session: str = ""
    exchange: str = ""

    @property
    def whose(self) -> str:
        """Whose events are selected, in words; empty if all agents and sessions are."""
        parts = (("exchange", self.exchange), ("session", self.session), ("agent", self.agent))
        return ", ".join(f"{kind} {name!r}" for kind, name in parts if name)

    def matches(self, stored: Stored) -> bool:
        """Whether an event within the range and the filter is selected; an unreadable one belongs to no agent."""
        if self.exchange and exchange_of(stored) != self.exchange:
            return False
        if not (self.agent or self.session):
            return True
        try:
            envelope = decode_headers(stored.headers)
        except UndecodableEvent:
            return False
        return self.agent in ("", envelope.agent) and self.session in ("", envelope.session)


async def export_lines(
    source: Source, selection: Selection, write: Callable[[bytes], object], key: bytes | None = None
) -> int:
    """Write the selected events, one line each; return their number.

    Args:
        source: Where the events are read.
        selection: Which events.
        write: Takes each line, its end included.
        key: Replace people's words by hashes under this key; None writes them as they are stored.

    Raises:
        NothingFound: no event is selected.
        LedgerDamaged: the rows that were read differ from those that were written.
        LogError: the source cannot be read.
    """
    count = 0
    last = min((await source.info()).last_seq, selection.upto.seq)
    async for batch in source.as_stored([selection.filter], selection.first - 1, last):
        chosen = [one for one in batch if one.time_ns <= selection.upto.time_ns and selection.matches(one)]
        if key is not None:
            chosen = [redacted(opened, key) for opened in await source.sealing.open(chosen)]
        for stored in chosen:
            write(to_line(stored) + b"\n")
        count += len(chosen)
    # The lines have no hashes, so that their reader could not notice damage.
    if damage := source.damage.warning_text(source.name):
        raise LedgerDamaged(f"not exported: {damage}")
    if not count:
        end, whose = (await span_of(source)).end, f" of {selection.whose}" if selection.whose else ""
        raise NothingFound(
            f"the {source.name}, which ends at {end}, holds no such event{whose}: nothing was exported; check --from, "
            "--to and --topic, and give names and ids as a whole"
        )
    return count


class ChosenExchanges(msgspec.Struct, frozen=True):
    """Exchanges to export, by id, and the sequence of the last event of any of them."""

    exchanges: tuple[str, ...]
    last_seq: int


async def choose_exchanges(
    source: Source, *, exchanges: Sequence[str] = (), session: str = "", last: int = 0
) -> ChosenExchanges:
    """Return the named exchanges, or those that ended in ``session``, or all.

    ``last`` is how many of them at most, the latest to end; 0: no limit.

    Raises:
        NothingFound: an exchange that is named is unknown or has not ended, or none is chosen.
        LogError: the source cannot be read.
    """
    end = (await source.info()).last_seq
    of_session = Selection(session=session)
    found: dict[str, int] = {}
    async for batch in source.as_stored([_END_FILTER], 0, end):
        for stored in batch:
            exchange = exchange_of(stored)
            if exchange and (exchange in exchanges if exchanges else of_session.matches(stored)):
                found.setdefault(exchange, stored.seq)
    if missing := [exchange_id for exchange_id in exchanges if exchange_id not in found]:
        raise NothingFound(f"the {source.name} has no exchange {missing[0]!r} that has ended: name it by its whole id")
    chosen = tuple(found)[-last:] if last else tuple(found)
    if not chosen:
        raise NothingFound(f"the {source.name} has no such exchange that has ended: nothing is recorded")
    last_seq, wanted = max(found[exchange_id] for exchange_id in chosen), frozenset(chosen)
    # An exchange has events after its end, too, such as what memory keeps of it.
    async for batch in source.as_stored([EVERYTHING], last_seq, end):
        last_seq = max([last_seq, *(stored.seq for stored in batch if exchange_of(stored) in wanted)])
    return ChosenExchanges(chosen, last_seq)


async def export_bundle(
    source: Source, path: Path, upto: Point = END, key: bytes | None = None, chosen: Sequence[str] = ()
) -> Manifest:
    """Write the log up to a point as a bundle; return its manifest. ``key``: see :func:`export_lines`.

    A redacted bundle has a hash chain of its own, and names the head of the log's, that is, the last hash of its chain.
    ``chosen`` are the exchanges for which the bundle was made; the manifest names them.

    Raises:
        Misconfigured: an event of the log is missing, such as its first, and is not recorded as lost.
        LedgerDamaged: the ledger's rows are not those that its hash chain was made of.
        LogError: the source cannot be read, or the file not be written.
    """
    info, losses = await source.info(), await source.losses()
    if info.first_seq > 1 and not losses.has_gap(1, info.first_seq - 1):
        raise Misconfigured(f"the {source.name} begins at sequence {info.first_seq}, not 1: take a copy that is whole")
    # The source is read twice, up to the same event: a live log grows meanwhile.
    upto = msgspec.structs.replace(upto, seq=min(info.last_seq, upto.seq))
    origin = Manifest(
        format=FORMAT,
        project=version("neuraxis"),
        stream=source.stream,
        agent_partitions=source.partitions.agents,
        session_partitions=source.partitions.sessions,
        events=0,
        last_seq=0,
        head="",
        redacted=key is not None,
        original_head=await _original_head(source, upto, losses, key),
        versions={},
        chosen=tuple(chosen),
        missing=losses.lost_for_good,
        former_partitions=source.partitions.former or msgspec.UNSET,
    )
    redaction = Redaction(key) if key is not None else None
    return await write_bundle(path, _batches(source, upto, losses, redaction), origin)


async def _original_head(source: Source, upto: Point, losses: Losses, key: bytes | None) -> str:
    # The first of two readings: the manifest must be complete before the archive is written.
    if key is None:
        return ""
    redaction = Redaction(key)
    async for _ in _batches(source, upto, losses, redaction):
        pass
    return redaction.original.hex()


async def _batches(
    source: Source, upto: Point, losses: Losses, redaction: Redaction | None
) -> AsyncIterator[Sequence[Stored]]:
    """Yield the events up to a point; if some before it are lost, up to the event that records the loss."""
    last, head = 0, GENESIS
    async for batch in source.as_stored([EVERYTHING], 0, max(upto.seq, losses.last_seq)):
        within: list[Stored] = []
        for stored in batch:
            if (stored.seq > upto.seq or stored.time_ns > upto.time_ns) and stored.seq > _last_loss_record(
                losses, last
            ):
                break
            within.append(stored)
            last, head = stored.seq, link_row(head, to_row(stored))
        if redaction is None:
            yield within
        else:
            opened = await source.sealing.open(within)
            yield [redaction.take(raw, open_one) for raw, open_one in zip(within, opened, strict=True)]
        if len(within) < len(batch):
            break
    # Without this check, the bundle's own hash chain would prove rows that are not what was recorded.
    if source.recorded_head(last) not in (None, head):
        raise LedgerDamaged(
            f"{source.name}: not exported, since its rows are not those that its hash chain was made of: "
            "`neuraxis log verify` lists what differs"
        )


def _last_loss_record(losses: Losses, last: int) -> int:
    """Return the sequence of the last event that records a loss within the events up to a sequence; 0 for none.

    A loss whose sequences the log has given to other messages leaves no gap, and needs no record.
    """
    before = (loss for loss in losses.found if loss.event.first_seq <= last and not loss.event.given_again)
    return max((loss.seq for loss in before), default=0)
