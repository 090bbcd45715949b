"""Which recorded events a command reads: those of ``--log``, of the data folder's ledger, or of the stream."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deploy.cli.connect import access_to, open_log
from deploy.cli.options import FILE, Target
from deploy.cli.outcomes import WrongUse
from deploy.cli.wrapped_lines import say_note
from deploy.operating.deadline import Deadline
from events.errors import LogError, Misconfigured, NoLeader, NotPermitted, Unavailable, UnknownOutcome

if TYPE_CHECKING:
    from events.jetstream import JetStreamLog
    from events.log import Log
    from events.replay.sources import LedgerSource, Source, StreamSource
    from events.sealing.keys import KeyEntry, KeyStore

CATCH_UP_S = 2.0
"""Seconds to wait until the ledger of a running set has reached the stream's end; it is usually milliseconds behind."""

_INPUTS_LOOKED_AT = 16
"""How many inputs of a ledger are looked at, to see whether it is sealed: an input without words is not."""

_STOPPED = "the set is stopped"


log_option = click.option(
    "--log",
    "log_file",
    type=FILE,
    metavar="FILE",
    help="Read this ledger file or bundle instead of a live log; nothing needs to run.",
)
"""Adds ``--log``, as the argument ``log_file``."""


def filter_of(topic: str) -> str:
    """Return the filter over stored subjects for a pattern of public ones; raises WrongUse."""
    from schemas.event import ROOT
    from schemas.intake.topics import unknown_topic
    from schemas.subjects import EVERYTHING, topic_filter

    if not topic or topic == f"{ROOT}.>":
        return EVERYTHING
    tokens = topic.split(".")
    if tokens[0] != ROOT or len(tokens) < 2 or not all(tokens) or ">" in tokens[:-1] or set(topic) & set(" \t\r\n"):
        raise WrongUse(f"{topic!r} is no public subject: write {ROOT}.router.mode_selected, or {ROOT}.router.>")
    # Only a note, no error: a log of another release may have events of an unknown subject.
    say_note(unknown_topic(topic))
    return topic_filter(topic)


@contextmanager
def until_ctrl_c() -> Iterator[None]:
    """End the block at Ctrl-C without an error: that is the normal end of following a log."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    with suppress(asyncio.CancelledError):
        yield


@asynccontextmanager
async def open_source(target: Target, log_file: Path | None) -> AsyncIterator["Source"]:
    """Open the named ledger file, or else the stream; if the set does not run, the ledger in its folder.

    Sealed words of a file are opened if the keys can be reached: at the named broker, or at the running set. A broker
    that no flag names is asked only when a sealed word is met.

    If the caller raises NothingFound and the log holds no event at all, the error says that instead, and why, if known.

    Raises:
        LogError, NotRunning, BadContext: see ``LedgerReader`` and ``open_log``.
        NothingFound: the file is a copy that lacks all its rows.
    """
    from events.replay.sources import LedgerSource

    async with AsyncExitStack() as open_things:
        if log_file is None:
            found = await open_things.enter_async_context(stream_or_ledger(target))
            source = found if isinstance(found, LedgerSource) else stream_source(open_things, found)
            async with _explaining_empty_log(source):
                yield source
            return
        ledger = LedgerSource(log_file)
        await close_at_exit(open_things, ledger)
        await _attach_keys(open_things, target, ledger)
        async with _explaining_empty_log(ledger):
            yield ledger


@asynccontextmanager
async def _explaining_empty_log(source: "Source") -> AsyncIterator[None]:
    """If the block raises NothingFound and the log holds no event at all, raise an error that says so instead."""
    from events.replay.presence_checks import NothingFound, span_of

    try:
        yield
    except NothingFound:
        await span_of(source)
        raise


@asynccontextmanager
async def stream_or_ledger(
    target: Target, deadline: Deadline | None = None
) -> AsyncIterator["JetStreamLog | LedgerSource"]:
    """Open the stream. If no flag names a broker and none answers, open the data folder's ledger, and say so on stderr.

    Args:
        target: The set or broker that the options name.
        deadline: That of a command that will send something: it needs the broker, so no ledger takes its place.

    Raises:
        LogError, NotRunning, BadContext: as ``open_log`` does, if no ledger takes its place.
    """
    from deploy.processes.running_set import NotRunning

    async with AsyncExitStack() as open_things:
        try:
            found: JetStreamLog | LedgerSource = await open_things.enter_async_context(
                open_log(target, deadline=deadline)
            )
        except (NotRunning, Unavailable, UnknownOutcome) as why:
            if deadline is not None or target.flags.named or not target.data.ledger.exists():
                raise
            found = await _ledger_instead(open_things, target, why)
        yield found


def _unreached_text(why: Exception, target: Target) -> str:
    """Return why the stream cannot be read, in a few words."""
    from deploy.processes.running_set import ENDED_EARLY, NotReachableYet, NotRunning

    match why:
        case NotReachableYet():  # a NotRunning, too, but the set is not stopped
            return str(why)
        case NotRunning():
            return f"the set {ENDED_EARLY}" if target.data.run_file.exists() else _STOPPED
        case NoLeader():
            return "the broker's cluster has no leader"
        case NotPermitted():
            return "the login lacks rights at the broker"
        case _:
            return "no broker answers"


async def _ledger_instead(open_things: AsyncExitStack, target: Target, why: Exception) -> "LedgerSource":
    from deploy.processes.broker_access import effective_choice
    from deploy.processes.running_set import ENDED_EARLY
    from events.replay.sources import LedgerSource

    ledger = LedgerSource(target.data.ledger)
    await close_at_exit(open_things, ledger)
    choice = effective_choice(target.flags, target.config().broker, os.environ)
    reason = _unreached_text(why, target)
    read_from = "its ledger"
    if choice.named:  # by a variable or the configuration: what lies in the data folder may be another log's
        by = "NATS_URL" if os.environ.get("NATS_URL") else "the configuration (broker)"
        reason = f"{reason} at {access_to(target).servers}, which {by} names"
        read_from = "the data folder's ledger, which may be another log's:"
        ledger.unreached = reason
    elif reason != _STOPPED:
        ledger.unreached = reason
    last = (await ledger.info()).last_seq
    rest = "; start the set for what may come after" if reason.endswith(ENDED_EARLY) else ""
    say_note(f"{reason}: this is read from {read_from} {target.data.ledger}, up to sequence {last:,}{rest}")
    if await has_sealed_words(ledger):
        _say_words_are_closed(ledger)
    return ledger


@asynccontextmanager
async def open_indexed_source(
    target: Target, log_file: Path | None, deadline: Deadline | None = None
) -> AsyncIterator["Source"]:
    """Open the source that finds an exchange fastest: the data folder's ledger if it is up to date, else the stream.

    A ledger is up to date if it holds all of the stream, or if the stream cannot be reached; with a ``deadline``, the
    stream must be reached (see :func:`stream_or_ledger`).

    Raises:
        LogError, NotRunning, BadContext: as :func:`open_source` does.
    """
    from events.replay.sources import LedgerSource

    async with AsyncExitStack() as open_things:
        has_ledger = not target.flags.named and target.data.ledger.exists()
        if log_file is not None or (deadline is None and not has_ledger):
            yield await open_things.enter_async_context(open_source(target, log_file))
            return
        found = await open_things.enter_async_context(stream_or_ledger(target, deadline))
        if isinstance(found, LedgerSource):
            yield found
            return
        if not has_ledger:
            yield stream_source(open_things, found)
            return
        ledger = LedgerSource(target.data.ledger)
        _report_at_exit(open_things, ledger)
        if await _holds_all(ledger, found.as_stored()):
            ledger.sealing = found.sealing or ledger.sealing
            yield ledger
            return
        yield stream_source(open_things, found)


def stream_source(open_things: AsyncExitStack, log: "JetStreamLog") -> "StreamSource":
    """Return a stream as a source. When it is closed, what of it was missing or left out is reported on stderr."""
    from events.replay.sources import StreamSource

    source = StreamSource(log)
    open_things.callback(warn_of_unread, source)
    open_things.push_async_callback(warn_of_gaps, source)
    return source


async def close_at_exit(open_things: AsyncExitStack, ledger: "LedgerSource") -> None:
    """Close a ledger when ``open_things`` is left; before that, report what of it was damaged, missing or left out on
    stderr.

    Raises:
        NothingFound: it is a copy that lacks all its rows.
    """
    _report_at_exit(open_things, ledger)
    await check_wal(ledger)


def _report_at_exit(open_things: AsyncExitStack, ledger: "LedgerSource") -> None:
    open_things.callback(ledger.close)
    open_things.callback(warn_of_unread, ledger)
    open_things.callback(warn_of_damage, ledger)
    open_things.push_async_callback(warn_of_gaps, ledger)


def warn_of_unread(source: "Source") -> None:
    """Say on stderr which events were left out of what was shown, since this release cannot read them, if any."""
    say_note(source.unread.text)


def warn_of_damage(ledger: "LedgerSource") -> None:
    """Say on stderr which of the rows that were read are damaged, if any."""
    say_note(ledger.damage.warning_text(ledger.name))


async def warn_of_gaps(source: "Source") -> None:
    """Say on stderr which events are missing in what was read, if any; nothing if that cannot be found out now."""
    from events.replay.gaps import missing_text

    with suppress(LogError):
        say_note(missing_text(source.name, source.gaps.missing(await source.losses())))


async def check_wal(ledger: "LedgerSource") -> None:
    """Raise NothingFound for a copy that lacks all its rows; warn of one that may lack its last rows."""
    from events.replay.presence_checks import span_of

    if ledger.lacks_wal:
        await span_of(ledger)
    warn_of_missing_wal(ledger)


def warn_of_missing_wal(ledger: "LedgerSource") -> None:
    """Say on stderr that a file may lack its last rows, if so."""
    if ledger.lacks_wal:
        say_note(
            f"{ledger.name} was copied while a set wrote to it: if without the {ledger.file.name}-wal beside it, "
            "the last rows may be missing; `neuraxis backup` copies all"
        )


async def _attach_keys(open_things: AsyncExitStack, target: Target, ledger: "LedgerSource") -> None:
    """Give a ledger the keys of the broker that a flag names; without such a flag, keys are fetched when needed."""
    from multiprocessing import parent_process

    from events.sealing.keys import Keyring
    from events.sealing.sealing import Sealing

    if target.flags.named:
        log = await open_things.enter_async_context(open_log(target))
        ledger.sealing = log.sealing or ledger.sealing
    else:
        keys = _KeysOnDemand(open_things, target)
        ledger.sealing = Sealing(Keyring(keys))
        # A child process of a parallel replay prints nothing, so it need not know.
        if parent_process() is None and await has_sealed_words(ledger) and not await keys.are_there():
            _say_words_are_closed(ledger)


async def has_sealed_words(ledger: "LedgerSource") -> bool:
    """Whether one of a ledger's first inputs is sealed by a key that may still exist; then all with words are."""
    from events.sealing.sealed_texts import KEY_DESTROYED, SEALED_HEADER
    from schemas.event import topic_of
    from schemas.subjects import topic_filter
    from schemas.vocabulary.gateway import InputReceived

    after, last = 0, (await ledger.info()).last_seq
    for _ in range(_INPUTS_LOOKED_AT):
        found = await ledger.first([topic_filter(topic_of(InputReceived))], after, last)
        if found is None:
            return False
        if found.headers.get(SEALED_HEADER, KEY_DESTROYED) != KEY_DESTROYED:
            return True
        after = found.seq
    return False


def _say_words_are_closed(ledger: "LedgerSource") -> None:
    """Say on stderr what is read instead of sealed words, so that no state or hash is taken for the true one."""
    say_note(
        f"{ledger.name} has sealed words, and their keys are at the broker of its set, which is not reached: "
        "[sealed] stands for them, also in states and their hashes"
    )


class _KeysOnDemand:
    """The keys of the running set, or of the broker in the environment; none if neither can be reached.

    It connects when the first key is needed, or is asked for: most files hold no sealed words, and are read without a
    broker.
    """

    def __init__(self, open_things: AsyncExitStack, target: Target) -> None:
        self._open_things = open_things
        self._target = target
        self._store: KeyStore | None = None

    async def _connected(self) -> "KeyStore":
        from deploy.processes.running_set import NotRunning
        from events.sealing.keys import NoKeys

        if self._store is None:
            self._store = NoKeys()
            with suppress(NotRunning, Misconfigured, Unavailable, UnknownOutcome):
                log = await self._open_things.enter_async_context(open_log(self._target))
                if log.sealing is not None:
                    self._store = log.sealing.keyring.store
        return self._store

    async def are_there(self) -> bool:
        """Whether the keys can be reached."""
        from events.sealing.keys import NoKeys

        return not isinstance(await self._connected(), NoKeys)

    async def load(self, names: Collection[str]) -> "Mapping[str, KeyEntry]":
        """Return the entries of these names."""
        return await (await self._connected()).load(names)

    async def confirm(self, name: str) -> "KeyEntry | None":
        """Return the entry of a name as it is now."""
        return await (await self._connected()).confirm(name)

    async def create(self, name: str, secret: bytes, revision: int) -> bool:
        """Store nothing: a reader of a file makes no keys."""
        return False

    async def destroy(self, name: str) -> bool:
        """Destroy nothing."""
        return False


async def _holds_all(ledger: "LedgerSource", log: "Log") -> bool:
    """Whether the ledger follows this stream, and reaches its end within a moment."""
    from events.log import is_same_message
    from schemas.subjects import EVERYTHING

    end = (await log.info()).last_seq
    deadline = asyncio.get_running_loop().time() + CATCH_UP_S
    while (await ledger.info()).last_seq < end:
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    async for batch in log.history([EVERYTHING], end - 1, end):
        row = ledger.at(end)
        return row is not None and is_same_message(batch[0], row)
    return False
