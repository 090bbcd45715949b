"""Alerts: what calls for a person, told once, again when it grows, and when it is over.

Every subject of the catalogue with a severity is heard, and every event that ends such a condition. Events of one kind
and one agent (a session, a mode, a reason: see ``grouping``) make a group. It is announced as
``alert.<severity>.<source>`` when it opens, when its count has doubled and every five minutes while it goes on; and as
resolved when its condition ended or nothing was added for fifteen minutes, one minute for severity info, which tells
of acts. At most sixty announcements of a severity go out in a minute, twenty of them for one agent; those that were
held back are made in a later minute, each agent's in turn, if their groups are still open.

What is kept is bounded: a topic has two thousand groups, twenty of one agent. Beyond, what would open another is
counted in one group of the topic, or of the agent and topic.
An alert holds numbers and codes alone, never people's words, and none of ours: those are put to it where it is shown.

``grouping``   what makes a group, as data          ``groups``    what is kept of one
``decider``    the state machine                    ``settings``  times and limits
"""

from actors.alerts.decider import State, decide, evolve
from actors.alerts.grouping import ENDED
from actors.alerts.settings import AlertsSettings
from schemas.actor import Actor, Scope
from schemas.catalogue import ALERTING, CATALOGUE
from schemas.vocabulary.clock import ClockFired

ACTOR: Actor[State] = Actor(
    name="alerts",
    scope=Scope.GLOBAL,
    consumes=(ClockFired, *(CATALOGUE[topic].event for topic in sorted({*ALERTING, *ENDED}))),
    state_type=State,
    settings_type=AlertsSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
)

__all__ = ["ACTOR"]
