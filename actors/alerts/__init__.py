"""Alerts: conditions that need a person's attention, announced once, again when they grow, and when they are over.

It consumes every event whose catalogue entry has a severity, and every event that ends such a condition. Events of one
kind and one agent (or session, mode, reason: see ``grouping``) form a group. A group is announced as
``alert.<severity>.<source>`` when it opens, when its count has doubled, and every five minutes while it goes on. It is
announced as resolved when its condition ends, or when nothing was added for fifteen minutes (one minute for severity
info, which reports what is already done). At most sixty announcements of a severity are made in a minute, twenty of
them for one agent. Those that were held back are made in a later minute, the agents taking turns, if their groups are
still open.

State is bounded: a topic (the name of an event's type, as in the catalogue) has at most two thousand groups, and twenty
of one agent. Further groups are counted together in one group of the topic, or of the agent and topic. An alert holds
only numbers and codes, neither people's text nor sentences of ours: those are added where it is shown.

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
    in_background=True,
)
