"""How coherent the actors and agents are as a whole. Owner: ``swarm``."""

from schemas.actor import Scope
from schemas.entry import Entry, Severity
from schemas.event import Configured, Event, Failed, Unit


class SwarmMeasured(Event, frozen=True, kw_only=True, tag="forged_id.swarm.measured"):
    """The swarm's coherence index, recorded when it moved by 0.05 or more.

    ``sci`` = 0.30 precedent agreement + 0.25 health alignment + 0.25 delivered share + 0.20 decision consistency;
    healthy from 0.70 on.
    """

    sci: Unit
    precedent_agreement: Unit
    health_alignment: Unit
    delivered_share: Unit
    decision_consistency: Unit
    healthy: bool


class SwarmConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.swarm.configured"):
    """The settings of swarm, from here on."""


class SwarmFailed(Failed, frozen=True, kw_only=True, tag="forged_id.swarm.failed"):
    """A message that swarm could not decide."""


ENTRIES = (
    Entry(
        event=SwarmMeasured,
        owner="swarm",
        scope=Scope.GLOBAL,
        meaning="The swarm's coherence index and its four parts, when it moved.",
        sample=SwarmMeasured(
            sci=0.9475,
            precedent_agreement=1.0,
            health_alignment=0.95,
            delivered_share=0.84,
            decision_consistency=1.0,
            healthy=True,
        ),
    ),
    Entry(
        event=SwarmConfigured,
        owner="swarm",
        scope=Scope.GLOBAL,
        meaning="Swarm decides with these settings from here on.",
        sample=SwarmConfigured(settings={}, settings_hash="0" * 64, behaviour=1),
        spontaneous=True,
    ),
    Entry(
        event=SwarmFailed,
        owner="swarm",
        scope=Scope.GLOBAL,
        meaning="Swarm could not decide a message; its exchange, if it has one, ends as FAILED.",
        sample=SwarmFailed(
            reason="decider_raised", error="ValueError", failed_seq=7, failed_topic="forged_id.response.emitted"
        ),
        severity=Severity.CRITICAL,
    ),
)
