"""Runs ``neuraxis`` with probes: it records when each event is decided, sent and delivered, and each part's CPU time.

Run as ``python -m bench.system.path_probe ARGUMENTS``, instead of ``python -m neuraxis_server``; ``up`` starts its
processes the same way. At its end each process writes its records into the folder ``NEURAXIS_PROBES``. Time is counted
while that folder has a file ``counting``. Functions are wrapped by name: if one does not exist, the start fails.

If the folder has a file ``allocations``, no function is wrapped: memray records every allocation of the process while
``counting`` is there, and writes them beside the records.
"""

import atexit
import gc
import json
import os
import sys
import threading
import time
import types
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Mapping
from functools import partial
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

FOLDER = "NEURAXIS_PROBES"
"""Environment variable with the folder that the processes write their records into."""

COUNTING = "counting"
"""The file in that folder that exists while time is counted."""

ALLOCATIONS = "allocations"
"""The file in that folder that has allocations recorded, in place of everything else."""

FUNCTIONS = {
    "actors.runtime.dispatcher:Dispatcher._dispatch": "routing",
    "actors.runtime.dispatcher:decode": "decoding",
    "actors.gateway.exchanges:decode": "decoding",
    "actors.runtime.partition.decision_loop:DecisionLoop.work": "partition",
    "actors.runtime.partition.event_author:EventAuthor.group": "encoding",
    "events.make_decision:address_events": "encoding",
    "actors.runtime.committer:Committer.start": "committing",
    "actors.runtime.committer:Committer._on_done": "committing",
    "events.jetstream.connection:Connection.request_now": "committing",
    "events.jetstream.log:JetStreamLog.append_now": "committing",
    "events.jetstream.header_client:HeaderClient.publish_now": "encoding",
    "events.jetstream.header_client:HeaderClient._write_now": "socket out",
    "events.jetstream.connection:Connection._answered": "acknowledging",
    "events.jetstream.reading.stream_reader:StreamReader._on_message": "reading",
}
"""Function -> the part of the work that its time counts for, without the time of counted functions that it calls."""

COROUTINES = {
    "nats.protocol.parser:Parser.parse": "socket in",
    "nats.aio.client:Client._flush_pending": "socket out",
    "nats.aio.client:Client._flusher": "socket out",
    "events.jetstream.header_client:HeaderClient._process_headers": "reading headers",
    "events.jetstream.header_client:HeaderClient._send_publish": "encoding",
    "events.jetstream.connection:Connection.publish": "committing",
    "events.jetstream.log:JetStreamLog.append": "committing",
    "actors.runtime.committer:Committer._commit": "committing",
    "actors.gateway.http.openai.forwarding:UpstreamForwarder.forward": "forwarding",
    "actors.gateway.http.openai.upstream:Upstream.send": "upstream",
}
"""Coroutine function -> the part of the work that its time counts for."""

BY_ACTOR = {
    "events.make_decision:decide_only": "deciding",
    "events.make_decision:fold": "fold",
    "events.partition_fold:fold": "fold",
}
"""Function whose first argument is an actor -> the part of the work, to which the actor's name is added."""

COUNTS = {
    "events.jetstream.reading.stream_reader:StreamReader._on_stored": "messages read",
    "actors.runtime.dispatcher:decode": "decodes",
    "actors.gateway.exchanges:decode": "decodes",
    "actors.runtime.partition.shard:Shard.on_message": "dispatches",
    "events.make_decision:decide_only": "decisions",
    "schemas.actor:Actor.fold": "evolves",
}
"""Function -> what its calls are counted as; their time counts for the parts above."""

_here = threading.local()
"""The counted functions that a thread runs (``stack``); since when its time counts for the innermost (``since``)."""

_ns: dict[str, int] = defaultdict(int)  # part of the work -> nanoseconds of processor time
_calls: dict[str, int] = defaultdict(int)  # part of the work -> how often it was entered
_counts: dict[str, int] = defaultdict(int)  # what is counted, as in ``COUNTS`` -> how often it happened
_marks: list[tuple[int, str, str, str, str]] = []
"""Monotonic nanoseconds, what happened, and the event's id, topic and exchange."""

_stored: list[tuple[str, str, str, int]] = []
"""For each stored event: its id, its cause's id, its topic, and the number of its flush."""

_waited: list[int] = []
"""Nanoseconds of each flush, from the append to its acknowledgement."""

_counting = False
_POLL_S = 0.02


def mark(what: str, event: str, topic: str = "", exchange: str = "") -> None:
    """Record that something has just happened to an event."""
    _marks.append((time.monotonic_ns(), what, event, topic, exchange))


def _enter(part: str) -> None:
    stack: list[str] = _here.__dict__.setdefault("stack", [])
    now = time.thread_time_ns()
    if stack and _counting:
        _ns[stack[-1]] += now - _here.since
    stack.append(part)
    _here.since = now


def _leave() -> None:
    now = time.thread_time_ns()
    part = _here.stack.pop()
    if _counting:
        _ns[part] += now - _here.since
    _here.since = now


def counted(function: Callable[..., Any], part_of: Callable[..., str]) -> Callable[..., Any]:
    """Return a function whose processor time is counted, without that of counted functions that it calls."""

    def run(*arguments: Any, **options: Any) -> Any:
        part = part_of(*arguments)
        _calls[part] += _counting
        _enter(part)
        try:
            return function(*arguments, **options)
        finally:
            _leave()

    return run


def _count_collection(phase: str, _: Mapping[str, int]) -> None:
    """Count the time of a garbage collection for itself, and not for the part in which it happens."""
    if phase == "start":
        _calls["collecting"] += _counting
        _enter("collecting")
    else:
        _leave()


def _counting_calls(unit: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        _counts[unit] += _counting
        return function(*arguments, **options)

    return run


def counted_coroutine(part: str, function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return a coroutine function whose processor time is counted; the time in which it waits is not."""

    async def run(*arguments: Any, **options: Any) -> Any:
        _calls[part] += _counting
        return await _steps(function(*arguments, **options), part)

    return run


@types.coroutine
def _steps(coroutine: Coroutine[Any, Any, Any], part: str) -> Generator[Any, Any, Any]:
    step, sent_value = coroutine.send, None
    while True:
        _enter(part)
        try:
            waits_for = step(sent_value)
        except StopIteration as done:
            return done.value
        finally:
            _leave()
        try:
            step, sent_value = coroutine.send, (yield waits_for)
        except BaseException as raised:
            step, sent_value = coroutine.throw, raised


def install() -> None:
    """Wrap the functions.

    Raises:
        AttributeError: one does not exist.
        TypeError: one of ``COROUTINES`` is no coroutine function, or one of the others is.
    """
    for path in (*FUNCTIONS, *COROUTINES, *BY_ACTOR, *COUNTS):
        if iscoroutinefunction(_function_of(path)) is not (path in COROUTINES):
            raise TypeError(f"{path} is in the wrong one of FUNCTIONS and COROUTINES")
    for path, part in FUNCTIONS.items():
        _wrap(path, partial(counted, part_of=lambda *_, part=part: part))
    for path, part in COROUTINES.items():
        _wrap(path, partial(counted_coroutine, part))
    for path, part in BY_ACTOR.items():
        _wrap(path, partial(counted, part_of=lambda actor, *_, part=part: f"{part} {actor.name}"))
    gc.callbacks.append(_count_collection)
    for path, unit in COUNTS.items():
        _wrap(path, partial(_counting_calls, unit))
    _wrap("events.jetstream.header_client:HeaderClient._send_publish", _marking_sent)
    _wrap("events.jetstream.header_client:HeaderClient.publish_now", _marking_sent_now)
    _wrap("events.jetstream.log:JetStreamLog.append", _marking_acknowledged)
    _wrap("events.jetstream.log:JetStreamLog.append_now", _marking_acknowledged_now)
    _wrap("events.jetstream.reading.stream_reader:StreamReader._on_message", _marking_delivered)
    _wrap("events.partition_fold:View.decide_next", _marking_decided)
    _wrap("actors.gateway.http.openai.upstream:Upstream.send", _marking_asked)


def _wrap(path: str, wrapper: Callable[[Any], Any]) -> None:
    owner, name = _owner_of(path)
    setattr(owner, name, wrapper(getattr(owner, name)))


def _function_of(path: str) -> Any:
    owner, name = _owner_of(path)
    return getattr(owner, name)


def _owner_of(path: str) -> tuple[Any, str]:
    module, _, path = path.partition(":")
    owner: Any = import_module(module)
    *outer, name = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    return owner, name


def _mark_event(what: str, headers: Mapping[str, str] | None) -> None:
    if _counting and headers and "ce-exchange" in headers:
        mark(what, headers["ce-id"], headers["ce-type"], headers["ce-exchange"])


def _marking_sent(function: Any) -> Any:
    async def run(client: Any, subject: str, reply: str, payload: bytes, size: int, headers: Any) -> None:
        await function(client, subject, reply, payload, size, headers)
        _mark_event("sent", headers)

    return run


def _marking_sent_now(function: Any) -> Any:
    def run(client: Any, subject: str, reply: str, payload: bytes, headers: Any) -> bool:
        sent: bool = function(client, subject, reply, payload, headers)
        if sent:
            _mark_event("sent", headers)
        return sent

    return run


def _marking_acknowledged_now(function: Any) -> Any:
    def run(log: Any, append: Any, on_done: Any) -> bool:
        began_ns, counts = time.monotonic_ns(), _counting

        def acknowledged(outcome: Any) -> None:
            if isinstance(outcome, int):
                _count_stored((append,), began_ns, counts)
            on_done(outcome)

        started: bool = function(log, append, acknowledged)
        return started

    return run


def _marking_acknowledged(function: Any) -> Any:
    async def run(log: Any, appends: Any) -> int:
        began_ns, counts = time.monotonic_ns(), _counting
        last: int = await function(log, appends)
        _count_stored(appends, began_ns, counts)
        return last

    return run


def _count_stored(appends: Any, began_ns: int, counts: bool) -> None:
    """Count appends that were stored with one flush, their events, and the time since they were sent."""
    if counts:
        _waited.append(time.monotonic_ns() - began_ns)
        _counts["flushes"] += 1
    for append in appends:
        _counts["appends"] += counts
        for record in append.records:
            _counts["events"] += counts
            _mark_event("acknowledged", record.headers)
            if counts:
                headers = record.headers
                _stored.append((headers["ce-id"], headers.get("ce-cause", ""), headers["ce-type"], len(_waited)))


def _marking_delivered(function: Any) -> Any:
    def run(reader: Any, msg: Any) -> None:
        function(reader, msg)
        _mark_event("delivered", msg.headers)

    return run


def _marking_decided(function: Any) -> Any:
    def run(view: Any, **options: Any) -> Any:
        began_ns = time.monotonic_ns()
        decided = function(view, **options)
        for event in decided if _counting else ():
            if event.message.exchange:
                _marks.append((began_ns, "begun", event.message.id, event.topic, event.message.exchange))
                mark("decided", event.message.id, event.topic, event.message.exchange)
        return decided

    return run


def _marking_asked(function: Any) -> Any:
    async def run(upstream: Any, *arguments: Any, **options: Any) -> Any:
        mark("asked", "upstream")
        response = await function(upstream, *arguments, **options)
        mark("answered", "upstream")
        return response

    return run


def _follow_count(folder: Path) -> None:
    """Count while the file exists. A thread looks for it, since the event loop is what is measured."""
    global _counting
    while True:
        _counting = (folder / COUNTING).exists()
        time.sleep(_POLL_S)


def _record_allocations(folder: Path) -> None:
    """Record every allocation while the file exists, which it does once."""
    import memray

    while not (folder / COUNTING).exists():
        time.sleep(_POLL_S)
    with memray.Tracker(folder / f"{os.getpid()}.memray", trace_python_allocators=True):
        while (folder / COUNTING).exists():
            time.sleep(_POLL_S)


def _write(folder: Path) -> None:
    records = {
        "arguments": sys.argv[1:],
        "ns": _ns,
        "calls": _calls,
        "counts": _counts,
        "waited_ns": _waited,
        "marks": _marks,
        "stored": _stored,
    }
    (folder / f"{os.getpid()}.json").write_text(json.dumps(records))


def main() -> None:
    """Run the command line with probes."""
    folder = Path(os.environ[FOLDER])
    if sys.argv[1] == "up":
        from deploy.processes import worker_program

        names = vars(worker_program)
        spawn = names["spawn"]

        def probed(argv: tuple[str, ...], **options: Any) -> Any:
            return spawn(tuple(__spec__.name if each == "neuraxis_server" else each for each in argv), **options)

        names["spawn"] = probed
    else:
        allocations = (folder / ALLOCATIONS).exists()
        if not allocations:
            install()
        atexit.register(_write, folder)
        follow = _record_allocations if allocations else _follow_count
        threading.Thread(target=follow, args=(folder,), daemon=True).start()
    from neuraxis_server import main as run

    run()


if __name__ == "__main__":
    main()
