"""Questions about a log whose answers take long: an exchange decided again, an actor's state, the known settings.

They are asked over HTTP, and each is answered by a process of its own (``deploy.processes.examiner``). So the gateway
goes on serving, loads no actor, and can end a question that nobody waits for by ending that process. The answers are
made by the same code as those of the commands.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import inspect

from actors.registry import ACTORS, UnknownActor, actor_named
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.what_if import without_texts
from deploy.cli.rendering.why.tree import to_json
from deploy.config.assignments import repeated_key
from deploy.config.configured_log import attach_ledger, configured_log
from deploy.config.loading import BadConfiguration, Layer, flag_layer
from deploy.config.settings import LogSettings
from deploy.replaying.what_if import changes_of, run, settings_of
from deploy.replaying.what_if_verdicts import measured_setting_warnings, reason_text, why_nothing_compared
from events.errors import LogError
from events.jetstream import Access, Connection, JetStreamLog
from events.replay.explain import explain
from events.replay.presence_checks import BeyondEnd, NothingFound, check_holds, check_holds_key
from events.replay.run_replay import END, Point
from events.replay.sources import Source, StreamSource
from events.replay.states.conditions import BadCondition, path_of
from events.replay.states.partition_state import (
    NoSuchPartition,
    is_kept_under,
    no_such_path,
    partition_named,
    state_at,
    value_at,
)
from events.replay.whatif import Report, UnfitChanges, fields_of
from schemas.intake.error_messages import union_members

CONNECT_S = 10.0
"""Seconds within which a process that answers a question must connect to the broker."""


class DecideAgain(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The question how an exchange would have ended under other settings.

    Nothing after the sequence ``upto`` is read; 0: the log's end, such as for an exchange that has not ended.
    """

    exchange: str
    upto: int
    settings: dict[str, Any]


class ShowState(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The question for the state of an actor's partition at a sequence (0: the end), or the part of it at a path."""

    actor: str
    key: str
    at: int = 0
    path: str = ""


class Explain(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The question why an exchange ended as it did, wherever in the log it is."""

    exchange: str


class ListSettings(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The question which settings can be changed when a decision is made again."""


Question = DecideAgain | ShowState | Explain | ListSettings


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and the log that it is about.

    ``ledger`` is the file that holds what was removed from the log's beginning; empty: it is not on this machine.
    """

    access: Access
    log: LogSettings
    question: Question
    ledger: str = ""


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer, as JSON."""

    body: msgspec.Raw


class Unanswered(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Why there is no answer: a field is ``wrong``, what the question names is ``absent``, or the log is ``away``."""

    why: Literal["wrong", "absent", "away"]
    message: str
    field: str = ""


class ChangedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the exchange that differs: its fields, before and after, and whether it was there at all."""

    seq: int
    actor: str
    topic: str
    fields: dict[str, tuple[Any, Any]]
    there_before: bool
    there_after: bool


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How the exchange ended; if it has no end, ``how`` says why."""

    stage: str
    action: str
    reason: str
    mode: str
    how: str


class DecidedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange under other settings.

    ``fate`` is ``changed``, ``reworded`` (only words differ), ``same``, ``open`` (it has no recorded end) or ``held``
    (unknown, since a decision could not be made again). ``notes`` say which effects of the settings cannot show, and
    why. ``exchanges``, ``compared`` and ``changed`` count all exchanges up to this one, which were decided again, too.
    """

    exchange: str
    settings: dict[str, Any]
    fate: str
    before: Ending
    after: Ending
    decisions: tuple[ChangedEvent, ...]
    exchanges: int
    compared: int
    changed: int
    notes: tuple[str, ...]


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that can be changed when a decision is made again, the values that it takes, and its default."""

    key: str
    takes: str
    default: Any


async def answer(asked: Asked) -> Answered | Unanswered:
    """Return the answer to a question."""
    unseen = ""
    try:
        if isinstance(asked.question, ListSettings):
            return _encoded_answer(tuple(known_settings()))
        async with await Connection.open(asked.access, CONNECT_S) as connection:
            log = await configured_log(connection, asked.log, create=False)
            if asked.ledger:
                await attach_ledger(log, Path(asked.ledger))
            unseen = log.unseen
            if isinstance(asked.question, Explain):
                return Answered(body=msgspec.Raw(await explain_exchange(log, asked.question)))
            source = StreamSource(log)
            if isinstance(asked.question, DecideAgain):
                return _encoded_answer(await decide_again(source, asked.question))
            return _encoded_answer(await show_state(source, asked.question))
    except (BadConfiguration, UnfitChanges) as wrong:
        return Unanswered(why="wrong", field="settings", message=str(wrong))
    except BadCondition as wrong:
        return Unanswered(why="wrong", field="path", message=str(wrong))
    except NoSuchPartition as wrong:
        return Unanswered(why="wrong", field="key", message=str(wrong))
    except BeyondEnd as wrong:
        return Unanswered(why="wrong", field="at", message=str(wrong))
    except UnknownActor as wrong:
        return Unanswered(why="absent", message=str(wrong))
    except NothingFound as wrong:
        return Unanswered(why="absent", message="; ".join(filter(None, (str(wrong), unseen))))
    except LogError as wrong:
        return Unanswered(why="away", message=str(wrong))


def _encoded_answer(body: Any) -> Answered:
    return Answered(body=msgspec.Raw(msgspec.json.encode(body)))


async def explain_exchange(log: JetStreamLog, question: Explain) -> bytes:
    """Return why an exchange ended as it did, as ``neuraxis why --json`` does.

    Raises:
        NothingFound: the log holds nothing of it.
        LogError: the log cannot be read.
    """
    source = StreamSource(log)
    explanation = explain(await source.exchange(question.exchange))
    if explanation is None:
        raise NothingFound(f"the log holds no exchange {question.exchange[:64]!r}")
    return to_json(explanation, source.gaps.missing(await source.losses()))


async def decide_again(source: Source, question: DecideAgain) -> DecidedAgain:
    """Decide an exchange, and all before it, again under other settings.

    Raises:
        BadConfiguration, UnfitChanges: a setting is unknown, does not take its value, or does not fit the log.
        NothingFound: the log up to ``upto`` does not hold the exchange.
        LogError: the log cannot be read.
    """
    changes = changes_of(settings_of(None, layers_of(question.settings)), source.partitions)
    exchanges = frozenset({question.exchange})
    upto = Point(seq=question.upto) if question.upto else END
    (report,) = await run(source, [changes], upto=upto, examples=0, exchanges=exchanges)
    traced = report.traced.get(question.exchange)
    if traced is None:
        part = f"the log up to sequence {question.upto}" if question.upto else "the log"
        raise NothingFound(f"{part} holds no exchange {question.exchange[:64]!r}")
    hidden = without_texts(report).traced[question.exchange]
    return DecidedAgain(
        exchange=question.exchange,
        settings=question.settings,
        fate=report.fates[question.exchange].value,
        before=_ending(traced.outcome.recorded),
        after=_ending(traced.outcome.whatif),
        decisions=tuple(
            ChangedEvent(
                seq=change.seq,
                actor=change.actor,
                topic=change.topic,
                fields=fields_of(change),
                there_before=change.recorded is not None,
                there_after=change.whatif is not None,
            )
            for change in hidden.changes
        ),
        exchanges=report.exchanges,
        compared=report.compared,
        changed=report.changed,
        notes=tuple(_notes(report)),
    )


def _ending(end: Any) -> Ending:
    return Ending(stage=end.stage, action=end.action, reason=end.reason, mode=end.mode, how=end.how)


def _notes(report: Report) -> Iterator[str]:
    if nothing := why_nothing_compared(report):
        yield nothing
    yield from measured_setting_warnings(report)
    for code, count in report.unreadable.items():
        yield f"{counted(count, 'event')} cannot be read by this release: {code}"
    for reason, count in report.held_by_reason.items():
        yield f"{count:,} decisions were taken from the record: {reason_text(reason)}"


def layers_of(settings: Mapping[str, Any]) -> list[Layer]:
    """Return settings as layers over the recorded ones; a text is read as a value of the type that its key has.

    Raises:
        BadConfiguration: a key has no section, or is given twice: a section may be written in any case.
    """
    if twice := repeated_key(settings):
        raise BadConfiguration(f"{twice} is set twice: give it one value")
    layers = []
    for key, value in settings.items():
        if "." not in key:
            raise BadConfiguration(f"{key}: write SECTION.KEY, such as router.base_scores.RESPOND")
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        layers.append(flag_layer(f"setting {key}", key, text))
    return layers


async def show_state(source: Source, question: ShowState) -> Any:
    """Return a partition's state, or the part of it at a path.

    Raises:
        UnknownActor: there is no actor of that name.
        NoSuchPartition, BadCondition: the key or the path is not valid in any log.
        NothingFound: the log has not reached the sequence or has nothing of the key, or the state has nothing at the
            path.
        LogError: the log cannot be read.
    """
    actor = actor_named(question.actor)
    steps = path_of(question.path) if question.path else ()
    partition = partition_named(actor, question.key, source.partitions)
    upto = Point(seq=question.at) if question.at else END
    await check_holds(source, upto)
    found = await state_at(source, ACTORS[actor.name], partition, question.key, upto, lambda _: None)
    if not is_kept_under(found.under_key, question.key, ACTORS[actor.name].scope):
        # A key of nobody would otherwise be answered with the state of everybody else in its partition.
        kept = f"the states of {actor.name} are kept"
        await check_holds_key(source, question.key, tokens=[partition], scope=ACTORS[actor.name].scope, kept=kept)
    if not steps:
        return found
    values = value_at(found.state, found.under_key, steps)
    if not values:
        fault = no_such_path(found.state, found.under_key, question.path)
        raise NothingFound(f"{found.actor}/{found.partition}: {fault}")
    return next(iter(values.values())) if len(values) == 1 else values


def known_settings() -> Iterator[Setting]:
    """Yield the settings of all actors, which their decisions read."""
    for name, actor in ACTORS.items():
        defaults = msgspec.to_builtins(actor.settings_type())
        yield from _settings(name, inspect.type_info(actor.settings_type), defaults)


def _settings(key: str, kind: inspect.Type, default: Any) -> Iterator[Setting]:
    for member in union_members(kind):
        if isinstance(member, inspect.StructType) and isinstance(default, dict):
            for field in member.fields:
                yield from _settings(f"{key}.{field.encode_name}", field.type, default.get(field.encode_name))
            return
        if isinstance(member, inspect.DictType):
            for name in _names(member.key_type):
                given = default.get(name) if isinstance(default, dict) else None
                yield from _settings(f"{key}.{name}", member.value_type, given)
            return
    takes = [each for member in union_members(kind) if (each := _takes(member))]
    if takes:
        yield Setting(key=key, takes=" or ".join(takes), default=default)


def _names(kind: inspect.Type) -> Iterator[str]:
    for member in union_members(kind):
        if isinstance(member, inspect.LiteralType):
            yield from map(str, member.values)


def _takes(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.StrType():
            return "a text"
        case inspect.LiteralType(values=values):
            return ", ".join(map(str, values))
    return ""
