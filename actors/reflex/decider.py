"""Reflex decides: an input that holds a known threat ends here, any other goes on.

input.received                            -> blocked or passed; library_changed before it, once after each change
operator.patterns_imported | _withdrawn   -> nothing; the library is another from the next input on
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from actors.reflex.imports import Imports, after, whole_library
from actors.reflex.matcher import READINGS, Hit, Matcher, compile_library
from actors.reflex.settings import ReflexSettings
from actors.reflex.views import View, views_of
from schemas.actor import Message, settings_of
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.patterns import PatternsImported, PatternsWithdrawn
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexConfigured, ReflexLibraryChanged, ReflexPassed

PLAIN = "plain"
"""The view of a text as it stands."""


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
        try:
            return msgspec.structs.replace(state, settings=settings_of(event, ReflexSettings))
        except msgspec.ValidationError:
            return state
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
    ranked: list[tuple[int, Match]] = []
    allowance, cut = settings.max_decoded, False
    for part, text in _parts(settings, received):
        views = views_of(text, settings.decoded_views, allowance)
        ranked += _search(matcher, settings, part, views.all)
        allowance -= views.decoded
        cut = cut or views.cut
    # Stable, so that within a signature parts and views keep their order and places in a view stay sorted.
    ranked.sort(key=lambda found: found[0])
    matches = [match for _, match in ranked]
    decisive = next((match for match in matches if match.action == "BLOCK"), None)
    if decisive is None:
        return ReflexPassed(flags=_bounded(matches, settings.max_matches, None), cut=cut)
    return ReflexBlocked(
        pattern=decisive.pattern,
        signature=decisive.signature,
        confidence=decisive.confidence,
        view=decisive.view,
        span=decisive.span,
        matches=_bounded(matches, settings.max_matches, decisive),
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


def _search(
    matcher: Matcher, settings: ReflexSettings, part: str, views: tuple[View, ...]
) -> Iterator[tuple[int, Match]]:
    """Yield rank and match of every hit in a part's views, of each signature in the first view that shows it."""
    readings = (PLAIN, *settings.decoded_views)
    known: set[int] = set()
    for view in views:
        hits = [hit for hit in matcher.find(view.text, settings.max_matches, readings) if hit.rank not in known]
        known.update(hit.rank for hit in hits)
        for hit in hits:
            yield hit.rank, _match(matcher, hit, part, view)


def _match(matcher: Matcher, hit: Hit, part: str, view: View) -> Match:
    pattern, signature = matcher.signatures[hit.rank]
    reading = READINGS[hit.reading]
    name = ":".join((*view.path, reading) if reading != PLAIN or not view.path else view.path)
    return Match(
        pattern=pattern.name,
        signature=signature.text,
        action=pattern.action,
        confidence=pattern.confidence,
        view=part + name,
        span=(hit.start, hit.end),
        source=view.source(hit.start, hit.end),
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
