"""Reflex: stops known threats before anything thinks about them (source R 2, reflex escalation).

It decides from ``input.received`` alone. The text and the layers of the prompt are matched against a library of
signatures, whatever their case, accents, look-alike letters, invisible characters and white space:

- a ``BLOCK`` signature: ``reflex.blocked``, and the exchange ends;
- ``FLAG`` signatures only, or none: ``reflex.passed``, with the flags.

A match names its view: ``plain`` is the input's text, ``document[1]:plain`` the layer at index 1, whose
role is document. Spans are character offsets in that text or layer as it was received.
"""

from actors.reflex.decider import State, decide, evolve, initial
from actors.reflex.settings import ReflexSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexConfigured, ReflexFailed

ACTOR = Actor(
    name="reflex",
    scope=Scope.SESSION,
    consumes=(InputReceived,),
    state_type=State,
    settings_type=ReflexSettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
    configured=ReflexConfigured,
    failed=ReflexFailed,
)
