"""Strategies for recorded logs: whole conversations of all actors, and any stream that one actor may be given."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from actors.registry import ACTORS
from schemas.actor import Actor
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.actors.strategies import addresses, events_for, texts, waits_ms
from tests.events.recording import Recording
from tests.events.small_actors import DIARIST

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
many = settings(few, max_examples=40)

_steps = st.sampled_from(["send", "send", "send", "work", "wait", "break"])
_loads = st.sampled_from([1, 2, None])


@st.composite
def conversations(draw: st.DrawFn) -> Recording:
    """Record what all actors make of a few exchanges, each deciding now or later; at the end nothing is undecided."""
    recording = Recording(ACTORS.values())
    recording.configure()
    keys = list(recording.leaders)
    for number in range(draw(st.integers(1, 5))):
        address = Address("ann", draw(st.sampled_from(["morning", "evening"])), f"exchange-{number}")
        recording.send(InputReceived(text=draw(texts)), address)
        for key in draw(st.lists(st.sampled_from(keys), max_size=6)):
            recording.work(key, draw(_loads))
        recording.advance(draw(waits_ms))
    recording.settle()
    return recording


@st.composite
def streams(draw: st.DrawFn, actor: Actor[Any]) -> Recording:
    """Record what one actor makes of any events it may be given, broken ones among them, deciding now or later."""
    recording = Recording([actor])
    if draw(st.booleans()):
        recording.configure()
    for _ in range(draw(st.integers(0, 12))):
        match draw(_steps):
            case "send":
                recording.send(draw(events_for(actor.consumes)), draw(addresses))
            case "break":
                recording.send(draw(events_for(actor.consumes)), draw(addresses), body=draw(st.binary(max_size=5)))
            case "work":
                recording.work(draw(st.sampled_from(list(recording.leaders))), draw(_loads))
            case "wait":
                recording.advance(draw(waits_ms))
    recording.settle()
    return recording


@st.composite
def diaries(draw: st.DrawFn) -> Recording:
    """Record what the diarist makes of inputs that lead to none, one or several events."""
    recording = Recording([DIARIST])
    for _ in range(draw(st.integers(1, 10))):
        match draw(st.sampled_from(["ask", "ask", "work", "configure"])):
            case "ask":
                text = draw(st.sampled_from(["0", "1", "2", "3"]))
                recording.send(InputReceived(text=text), draw(addresses))
            case "work":
                recording.work(draw(st.sampled_from(list(recording.leaders))), draw(_loads))
            case "configure":
                recording.configure()
    recording.settle()
    return recording
