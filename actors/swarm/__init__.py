"""The swarm's coherence: one index over all actors and agents, measured from events.

Coherence index = 0.30 precedent agreement + 0.25 health alignment + 0.25 delivered share + 0.20 decision consistency,
each in [0, 1] over a sliding window (default 10 minutes), and 1.0 where the window holds nothing to judge by:

- precedent agreement: of the precedents that intuition reported two or more at a time, the share that side with the
  majority of their report. A precedent sides with doing (answering, acting) or with withholding; one with a harmful
  outcome sides against what was done.
- health alignment: 1 - the variance of the actors' health, an actor's health being the share of its decisions that did
  not fail. Actors that all fail alike are aligned; the delivered share tells that they fail.
- delivered share: of the accepted inputs, those that were decided. An exchange that ended as FAILED was not, nor one
  without an end after the grace period; one under way is not counted yet.
- decision consistency: of the last decisions on inputs like a known precedent, the share that agrees with the majority
  of those on the same precedent. It is 1.0 while there are fewer than ten.

``swarm.measured`` is appended when the index is 0.05 or more away from the last one appended (1.0 before any).
The swarm is healthy at 0.70 or more.

**Stages that nobody serves.** Heartbeats of workers are not events: the broker keeps them until they expire. The shell
of the worker that leads swarm reads them; what is certain enters the log as facts: ``swarm.stage_lost`` and
``swarm.stage_found``. While a stage is lost, the health alignment is 0, the delivered share counts only the served
partitions, and the swarm is not healthy. Shells also measure decisions beyond a stage's latency budget; these become
``swarm.over_budget`` and ``swarm.within_budget``, and no decision depends on them.

``sliding_window`` holds the sliding window, ``coherence_index`` the formula, ``availability_events`` what is worth
recording of a measurement, ``asked_stages`` which stages something waits for, ``decider`` what each event adds.
"""

from actors.swarm.decider import CONSUMED, SwarmState, decide, evolve, on_availability, reconfigured
from actors.swarm.settings import SwarmSettings
from schemas.actor import Actor, Scope

ACTOR: Actor[SwarmState] = Actor(
    name="swarm",
    scope=Scope.GLOBAL,
    consumes=CONSUMED,
    state_type=SwarmState,
    settings_type=SwarmSettings,
    initial=SwarmState,
    decide=decide,
    evolve=evolve,
    reconfigure=reconfigured,
    on_availability=on_availability,
    in_background=True,
)
