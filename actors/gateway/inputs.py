"""Checks an input on arrival and wraps it into an event."""

import re
from collections.abc import Sequence
from typing import Required, TypedDict

from actors.gateway.external_events import MAX_NAME, InvalidInput, WrappedEvent, build_event
from actors.gateway.input_size import wrong_with_size
from schemas.identity import event_id, new_exchange_id
from schemas.intake.blank import is_blank, says_nothing
from schemas.intake.limits import InputLimits
from schemas.names import wrong_with_name
from schemas.subjects import Partitions
from schemas.vocabulary.gateway import InputReceived, Layer, Purpose

DEFAULT_LIMITS = InputLimits()
"""The size limits of an input where none are set."""

_INBOX = re.compile(r"_INBOX(\.[A-Za-z0-9_-]+)+")


class NothingSaid(InvalidInput):
    """An input with nothing to judge or to answer. Its exchange would end as if something had been judged."""

    code = "missing_field"


class InputOptions(TypedDict, total=False):
    """The options of an input that may be given by name; see :func:`new_input`."""

    agent: Required[str]
    session: Required[str]
    layers: Sequence[Layer]
    situation: str
    label: str
    deadline_after_ms: int
    exchange: str
    purpose: Purpose
    rerun_of: str
    wordless: bool


def new_input(
    text: str,
    *,
    agent: str,
    session: str,
    partitions: Partitions,
    now_ns: int,
    layers: Sequence[Layer] = (),
    situation: str = "general",
    label: str = "",
    reply_to: str = "",
    deadline_after_ms: int = 60_000,
    exchange: str = "",
    stream: bool = False,
    purpose: Purpose = "answer",
    rerun_of: str = "",
    wordless: bool = False,
    limits: InputLimits = DEFAULT_LIMITS,
) -> WrappedEvent:
    """Check an input and wrap it; without ``exchange`` a new id is made. ``limits`` are those of the entry point.

    ``situation`` is its kind of situation, and ``label`` the caller's own id for it; the caller chooses both.
    ``reply_to`` is a NATS inbox that gets a copy of the answer, and with ``stream`` also its text in pieces, while the
    model generates it.

    ``purpose`` says who answers it: see ``schemas.vocabulary.gateway.Purpose``. ``rerun_of`` names the exchange whose
    input is sent again here. ``wordless``: the input comes with something other than text, such as a picture, and may
    have no text.

    Raises:
        NothingSaid: it is to be checked or forwarded, and only its system layers, which are not judged, have text. What
            is to be answered may be blank: the router ignores it.
        InvalidInput: too large, too many layers, text that is no Unicode (lone surrogates), a name that is missing,
            overlong or (of an agent or session) has control characters, a ``reply_to`` that is no inbox, or a deadline
            outside 1 ms to 30 days.
    """
    check_name("agent", agent)
    check_name("session", session)
    for name, value in {"label": label, "situation": situation, "exchange": exchange, "rerun_of": rerun_of}.items():
        if len(value) > MAX_NAME:
            raise InvalidInput(f"the {name} has {len(value)} characters: at most {MAX_NAME}")
        _check_unicode(name, value)
    if is_blank(situation):
        raise InvalidInput("the situation (`context` of a line) is blank: name one, or leave it out")
    _check_unicode("text", text)
    for number, layer in enumerate(layers):
        _check_unicode(f"layer {number}", layer.content)
    if purpose != "answer" and not wordless:
        check_says_something(text, layers)
    if too_large := wrong_with_size(text, layers, limits):
        raise InvalidInput(too_large)
    if reply_to and not _INBOX.fullmatch(reply_to):
        raise InvalidInput(f"reply_to {reply_to!r} is no inbox: it must be a literal subject below _INBOX")
    event = InputReceived(
        text=text,
        layers=tuple(layers),
        situation=situation,
        reply_to=reply_to,
        deadline_after_ms=deadline_after_ms,
        label=label,
        stream=stream,
        purpose=purpose,
        rerun_of=rerun_of,
    )
    exchange = exchange or new_exchange_id(now_ns)
    return build_event(
        event,
        id=event_id(exchange, "gateway", 0),
        agent=agent,
        session=session,
        exchange=exchange,
        partitions=partitions,
        now_ns=now_ns,
    )


def check_says_something(text: str, layers: Sequence[Layer]) -> None:
    """Raise NothingSaid for an input without text, or with text in system layers only, which an operator writes.

    White space and a few invisible characters count as no text. Many invisible characters may spell words, so they are
    left to the guards.
    """
    if all(map(says_nothing, (text, *(layer.content for layer in layers if layer.role != "system")))):
        note = ": system layers are recorded, and not judged" if any(each.role == "system" for each in layers) else ""
        raise NothingSaid(f"the text is empty or blank, and there is nothing else to check or answer{note}")


def check_name(what: str, name: str) -> None:
    """Check the name of an agent or session, whichever ``what`` says; raises InvalidInput."""
    if is_blank(name):
        raise InvalidInput(f"the {what} is empty: name the {what} this input belongs to")
    if wrong := wrong_with_name(name):
        raise InvalidInput(f"the {what} {wrong}")


def _check_unicode(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as wrong:
        raise InvalidInput(
            f"the {name} holds a lone surrogate at character {wrong.start}: it is no Unicode text; repair or drop it"
        ) from wrong
