"""Builders for reflex tests: an input judged by the actor, or by a library of the test's own."""

from typing import Any

from actors.reflex import ACTOR
from actors.reflex.decider import judge
from actors.reflex.library import Profile, make_library
from actors.reflex.matcher import Matcher, compile_library
from actors.reflex.settings import ReflexSettings
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.patterns import PatternSet, Signature
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexPassed
from tests.actors.scenario import Partition


def verdict(text: str, *layers: Layer, profile: Profile = "seed") -> Event:
    partition = Partition(ACTOR).configure(ReflexSettings(profile=profile))
    (event,) = partition.when(InputReceived(text=text, layers=layers))
    return event


def listed(event: Event) -> tuple[Match, ...]:
    assert isinstance(event, ReflexBlocked | ReflexPassed)
    return event.matches if isinstance(event, ReflexBlocked) else event.flags


def threat(name: str, *texts: str, action: Any = "BLOCK", whole_words: bool = True) -> PatternSet:
    signatures = tuple(Signature(text=text, whole_words=whole_words) for text in texts)
    return PatternSet(name=name, action=action, confidence=0.5, signatures=signatures)


def matcher(*sets: PatternSet) -> Matcher:
    return compile_library(make_library(sets))


def judged(text: str, *sets: PatternSet, max_matches: int = 32, **settings: Any) -> ReflexBlocked | ReflexPassed:
    return judge(matcher(*sets), ReflexSettings(max_matches=max_matches, **settings), InputReceived(text=text))
