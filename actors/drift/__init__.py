"""Drift: the thoughts that an idle agent has, while nobody talks to it.

Drift decides whether and when an idle agent thinks. Memory finds what the thought is about. It holds *episodes*, which
are remembered exchanges, and *concepts*, which are terms that occurred in them. From a first concept, activation
spreads to those that occurred with it, from 0 to 1::

    drift.scheduled -> clock.fired -> drift.started -> memory.wandered -> drift.thought and drift.scheduled
                                   -> drift.skipped                    -> drift.skipped

============  ========================================================================================================
safeguard     what it requires
============  ========================================================================================================
idle          no exchange of the agent is open, and there was one in the last 7 days
fatigue       the activations of the last 30 minutes' thoughts add up to less than 2.5 (see ``threshold``)
cooldown      a drift does not start from a concept that one started from in the last 60 minutes, even without a
              thought: otherwise the weakest fading concept would be chosen again and again
jitter        210 to 390 s between drifts; one time in ten 1.8 to 2.5 times as long
novelty       none of the latest 128 thoughts had the same concept and episode
backoff       each drift without a new thought doubles the time to the next, up to a day. If all concepts are in
              cooldown, the next drift comes when the first cooldown ends; if none is, after the next exchange
threshold     the activation of the thought is 0.4 or more: that of the strongest concept which the first one activated
strength      only a fading concept is strengthened, by 0.1, and only by a thought (memory does so on ``drift.thought``)
============  ========================================================================================================

The strategy for choosing the first concept is drawn by weight (fading .4, recent .3, salient .2, random .1). If it
finds no concept, another is drawn among those left. The most salient episode is the most exciting and new one. All
draws come from a generator seeded with the message's id and are recorded, so a drift replays exactly.

A thought is put into words by the composer (fixed sentences), or, with ``synthesis = "llm"``, by a language model
(purpose ``reflect``); if the model fails or is late, or reflex withholds what it wrote, by the composer. A thought has
words of one session only: it is sealed with that session's key, and forgotten with it. Drift itself knows concepts by
their ids in memory, and holds text only until a model's words were read. Forgetting may give a concept a new id, which
ends its cooldown.

An agent that nobody has talked to for 7 days, or whose memory was forgotten, does not drift. A partition keeps 10,000
agents; if there are more, the least recently used are dropped, and drift again after their next exchange.
"""

from actors.drift.decider import State, decide, evolve, reconfigured
from actors.drift.log_lines import log_lines
from actors.drift.settings import DriftSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[State] = Actor(
    name="drift",
    scope=Scope.AGENT,
    consumes=(
        InputReceived,
        ResponseEmitted,
        ClockFired,
        MemoryWandered,
        LlmCompleted,
        LlmFailed,
        ReflexAnswerPassed,
        ReflexAnswerBlocked,
        ForgetOrdered,
    ),
    state_type=State,
    settings_type=DriftSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    reconfigure=reconfigured,
    log_lines=log_lines,
    in_background=True,
)
