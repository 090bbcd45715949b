"""Reflex decides: an input that holds a known threat ends here, any other goes on."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from actors.reflex.library import library_of
from actors.reflex.matcher import Hit, Matcher, compile_library
from actors.reflex.settings import ReflexSettings
from schemas.actor import Message, settings_of
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexConfigured, ReflexPassed

PLAIN = "plain"
"""The view of a text as it stands."""


class State(msgspec.Struct, frozen=True):
    """Settings only: every input is judged by itself."""

    settings: ReflexSettings = ReflexSettings()


def initial() -> State:
    """Return the state of a partition nothing has happened in; compiles its library, so that no input waits for it."""
    state = State()
    _matcher_of(state.settings)
    return state


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Judge an input; anything else leads to nothing."""
    if not isinstance(message.event, InputReceived):
        return ()
    return (judge(_matcher_of(state.settings), state.settings, message.event),)


def evolve(state: State, message: Message) -> State:
    """Take over newly recorded settings; nothing else changes the state.

    Settings this release cannot read (written by a newer one) leave the state as it is.
    """
    if not isinstance(message.event, ReflexConfigured):
        return state
    try:
        return State(settings_of(message.event, ReflexSettings))
    except msgspec.ValidationError:
        return state


def judge(matcher: Matcher, settings: ReflexSettings, received: InputReceived) -> ReflexBlocked | ReflexPassed:
    """Return the verdict on an input under a compiled library.

    The first BLOCK signature in library order decides, wherever a FLAG signature stands; where it occurs
    more than once, its first place in the text, then in the layers.
    """
    found = [
        (hit, view) for view, text in _views(settings, received) for hit in matcher.find(text, settings.max_matches)
    ]
    # Stable, so that within a signature views keep their order and places in a view stay sorted.
    found.sort(key=lambda place: place[0].rank)
    matches = [_match(matcher, hit, view) for hit, view in found]
    decisive = next((match for match in matches if match.action == "BLOCK"), None)
    if decisive is None:
        return ReflexPassed(flags=_bounded(matches, settings.max_matches, None))
    return ReflexBlocked(
        pattern=decisive.pattern,
        signature=decisive.signature,
        confidence=decisive.confidence,
        view=decisive.view,
        span=decisive.span,
        matches=_bounded(matches, settings.max_matches, decisive),
    )


def _matcher_of(settings: ReflexSettings) -> Matcher:
    return compile_library(library_of(settings.profile))


def _views(settings: ReflexSettings, received: InputReceived) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every view: ``plain`` for the input's text, ``document[1]:plain`` for a layer."""
    yield PLAIN, received.text
    for place, layer in enumerate(received.layers):
        if layer.role in settings.scanned_layers:
            yield f"{layer.role}[{place}]:{PLAIN}", layer.content


def _match(matcher: Matcher, hit: Hit, view: str) -> Match:
    pattern, signature = matcher.signatures[hit.rank]
    return Match(
        pattern=pattern.name,
        signature=signature.text,
        action=pattern.action,
        confidence=pattern.confidence,
        view=view,
        span=(hit.start, hit.end),
    )


def _bounded(matches: list[Match], limit: int, decisive: Match | None) -> tuple[Match, ...]:
    """Keep ``limit`` matches in order: the decisive one, then a first place of every signature, then repetitions."""
    if len(matches) <= limit:
        return tuple(matches)
    seen: Counter[tuple[str, str]] = Counter()
    urgency: list[tuple[int, int]] = []
    for place, match in enumerate(matches):
        repetition = seen[match.pattern, match.signature]
        seen[match.pattern, match.signature] += 1
        urgency.append((-1 if match is decisive else repetition, place))
    return tuple(matches[place] for place in sorted(place for _, place in sorted(urgency)[:limit]))
