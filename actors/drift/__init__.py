"""Drift: the thoughts that come to an agent while nobody talks to it (source M, default mode network).

Drift decides when and whether; memory, which has the concepts and the episodes, answers what::

    drift.scheduled -> clock.fired -> drift.started -> memory.wandered -> drift.thought and drift.scheduled
                                   -> drift.skipped                    -> drift.skipped

============  ========================================================================================================
safeguard
============  ========================================================================================================
idle          no exchange of the agent is open, and it lived through something in the last 7 days
fatigue       the activations of the thoughts of 30 minutes add up to less than 2.5
cooldown      a concept that was begun with is left alone for 60 minutes, also where it came to nothing: else the
              weakest of the fading ones would be begun with over and over
jitter        210 to 390 s between drifts; one in ten times 1.8 to 2.5 times as long
news          a thought on the same concept and episode is not had again, of the latest 128
patience      what led to nothing new doubles the time to the next drift, up to a day; where every concept rests it is
              when the first has rested, and where none rests, after the next exchange
threshold     what the concept brings up, itself left out, has an activation of 0.4 or more
strength      only a fading concept is strengthened, by 0.1, and only by a thought (memory does, on ``drift.thought``)
============  ========================================================================================================

A strategy is drawn by its weight (fading .4, recent .3, salient .2, random .1); where it has no concept the next is
drawn among those left. All draws come from the message's own generator and are recorded, so a drift replays exactly.

A thought is put into words by the composer, or, where ``synthesis`` says so, by a language model (purpose ``reflect``);
where that fails or does not answer in time, by the composer. It has words of one session only: it is sealed with that
one's key, and forgotten with it. Drift itself knows concepts by their ids in memory: it holds words only while a model
is asked. Forgetting may number a concept anew, which then rests no longer.

An agent that nobody talks to for 7 days, or all of whose words are forgotten, does not drift any more. Of more than
10,000 agents of a partition those used least lately are dropped, and drift again once they are talked to.
"""

from actors.drift.decider import State, decide, evolve, reconfigured
from actors.drift.settings import DriftSettings
from actors.drift.telling import tell
from schemas.actor import Actor, Scope
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[State] = Actor(
    name="drift",
    scope=Scope.AGENT,
    consumes=(InputReceived, ResponseEmitted, ClockFired, MemoryWandered, LlmCompleted, LlmFailed, ForgetOrdered),
    state_type=State,
    settings_type=DriftSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    reconfigure=reconfigured,
    log_lines=tell,
)

__all__ = ["ACTOR"]
