"""Reflex decides: an input that holds a known threat ends here, any other goes on.

input.received                            -> blocked or passed; library_changed before it, once after each change
operator.patterns_imported | _withdrawn   -> nothing; the library is another from the next input on
"""

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from typing import NamedTuple

import msgspec

from actors.reflex.encodings import MAX_TRIES
from actors.reflex.imports import Imports, after, whole_library
from actors.reflex.matcher import FREE_CANDIDATES, READINGS, Hit, Matcher, compile_library
from actors.reflex.settings import ReflexSettings
from actors.reflex.views import View, views_of
from schemas.actor import Message, readable_settings
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.patterns import PatternsImported, PatternsWithdrawn
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexConfigured, ReflexLibraryChanged, ReflexPassed

PLAIN = "plain"
"""The view of a text as it stands."""


class _Place(NamedTuple):
    """Where a signature was found: in which part of the input, and in which of its views."""

    hit: Hit
    part: str
    view: View


class State(msgspec.Struct, frozen=True):
    """Settings and imported patterns: every input is judged by itself.

    ``unsaid``: the library was changed, and no input has been judged by it yet.
    """

    settings: ReflexSettings = ReflexSettings()
    imports: Imports = Imports()
    unsaid: bool = False


def initial() -> State:
    """Return the state of a partition nothing has happened in; compiles its library, so that no input waits for it."""
    state = State()
    _matcher_of(state)
    return state


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Judge an input; anything else leads to nothing."""
    if not isinstance(message.event, InputReceived):
        return ()
    verdict = judge(_matcher_of(state), state.settings, message.event)
    return (_changed(state), verdict) if state.unsaid else (verdict,)


def evolve(state: State, message: Message) -> State:
    """Take over newly recorded settings and imported patterns.

    Settings this release cannot read (written by a newer one) leave the state as it is; so do patterns that cannot
    be used.
    """
    event = message.event
    if isinstance(event, ReflexConfigured):
        settings = readable_settings(event, ReflexSettings)
        return state if settings is None else msgspec.structs.replace(state, settings=settings)
    if isinstance(event, PatternsImported | PatternsWithdrawn):
        imports = after(state.imports, event)
        return state if imports == state.imports else msgspec.structs.replace(state, imports=imports, unsaid=True)
    if isinstance(event, ReflexLibraryChanged) and state.unsaid:
        return msgspec.structs.replace(state, unsaid=False)
    return state


def judge(matcher: Matcher, settings: ReflexSettings, received: InputReceived) -> ReflexBlocked | ReflexPassed:
    """Return the verdict on an input under a compiled library.

    The first BLOCK signature in library order decides, wherever a FLAG signature stands; where it occurs
    more than once, its first place in the text, then in the layers.
    """
    places: list[_Place] = []
    room = FREE_CANDIDATES
    allowance, tries, cut = settings.max_decoded, MAX_TRIES, False
    for part, text in _parts(settings, received):
        views = views_of(text, settings.decoded_views, allowance, tries)
        allowance, tries, cut = allowance - views.decoded, tries - views.tries, cut or views.cut
        known: set[int] = set()
        for view in views.all:
            found = matcher.find(view.text, settings.max_matches, (PLAIN, *settings.decoded_views), room)
            room, cut = found.room, cut or found.cut
            # A signature counts in the first view that shows it.
            places += [_Place(hit, part, view) for hit in found.hits if hit.rank not in known]
            known.update(hit.rank for hit in found.hits)
    # Stable, so that within a signature parts and views keep their order and places in a view stay sorted.
    places.sort(key=lambda place: place.hit.rank)
    decisive = next((place for place in places if _action(matcher, place) == "BLOCK"), None)
    matches = tuple(_match(matcher, place) for place in _bounded(places, settings.max_matches, decisive))
    if decisive is None:
        return ReflexPassed(flags=matches, cut=cut)
    deciding = _match(matcher, decisive)
    return ReflexBlocked(
        pattern=deciding.pattern,
        signature=deciding.signature,
        confidence=deciding.confidence,
        view=deciding.view,
        span=deciding.span,
        matches=matches,
        cut=cut,
    )


def _matcher_of(state: State) -> Matcher:
    return compile_library(whole_library(state.settings.profile, state.imports))


def _changed(state: State) -> ReflexLibraryChanged:
    library = whole_library(state.settings.profile, state.imports)
    return ReflexLibraryChanged(
        profile=state.settings.profile,
        imports=state.imports.names(),
        signatures=len(_matcher_of(state).signatures),
        fingerprint=library.fingerprint,
    )


def _parts(settings: ReflexSettings, received: InputReceived) -> Iterator[tuple[str, str]]:
    """Yield the prefix of its views' names and the text of every part: the input's text, then the scanned layers."""
    yield "", received.text
    for place, layer in enumerate(received.layers):
        if layer.role in settings.scanned_layers:
            yield f"{layer.role}[{place}]:", layer.content


def _action(matcher: Matcher, place: _Place) -> str:
    return matcher.signatures[place.hit.rank][0].action


def _match(matcher: Matcher, place: _Place) -> Match:
    hit, view = place.hit, place.view
    pattern, signature = matcher.signatures[hit.rank]
    reading = READINGS[hit.reading]
    name = ":".join((*view.path, reading) if reading != PLAIN or not view.path else view.path)
    return Match(
        pattern=pattern.name,
        signature=signature.text,
        action=pattern.action,
        confidence=pattern.confidence,
        view=place.part + name,
        span=(hit.start, hit.end),
        source=view.source(hit.start, hit.end),
    )


def _bounded(places: list[_Place], limit: int, decisive: _Place | None) -> list[_Place]:
    """Keep ``limit`` places in order: the decisive one, then a first place of every signature, then repetitions."""
    if len(places) <= limit:
        return places
    seen: Counter[int] = Counter()
    urgency: list[tuple[int, int]] = []
    for number, place in enumerate(places):
        rank = place.hit.rank
        urgency.append((-1 if place is decisive else seen[rank], number))
        seen[rank] += 1
    return [places[number] for number in sorted(number for _, number in nsmallest(limit, urgency))]
