"""Memory: what an agent remembers, and what of it comes to mind (source M, memory and skills).

For an exchange that goes on to deliberation it says what comes to mind and how familiar the ground is
(``memory.recalled``); for the actions of an ACT iteration what they come to (``memory.actions_answered``); and after an
executed exchange what stays of it (``memory.remembered``). No model is asked: facts, gists and concepts are read from
the words by rule, and similarity is that of the embeddings that appraisal recorded.

=========  ======================  ===================  ======================================================
layer      is about                belongs to           ends
=========  ======================  ===================  ======================================================
turn       working memory          the session          with the fifth exchange after it, or the session
gist       the short term          the session          after a day, or with the session
fact       the medium term         the agent            with a later value, or as the oldest of 50 on its topic
episode    single exchanges        the agent            as the oldest of 20,000
concept    what they were about    the agent            with its last episode, or as the least recent of 1,000
=========  ======================  ===================  ======================================================

The agent's sessions share what belongs to the agent. Another agent's memory is never looked at.

**Large and folded.** The episodes are a persistent map: that alone is the state's value. Beside it, and left out of
snapshots and hashes, goes an index of their embeddings, append-only, shared by the states that descend from one another
and asked as of a version (``index``). All numbers are whole or rounded at each step, so that a recall gives the same
bits on every machine (``vectors``, ``decay``).

**Reviewed.** What self-review says of a memory (``trace.seat_added``) lets it come to mind sooner or later: its
``weights``.

**Wandering.** While nobody talks to the agent, drift asks what comes to mind by itself (``wandering``); what is thought
about it (``drift.thought``) is a gist of the agent's own, named ``drift:7``, that any of its sessions is reminded of
for a week, and that ends with the episode it rests on (``thoughts``).

**Forgetting** leaves none of the words in the state, nor anything that follows from them (``forgetting``): every memory
knows its session, and every concept the episodes it is from.
"""

from actors.memory.decider import State, decide, evolve, initial, warm
from actors.memory.settings import MemorySettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.act import ActActionsRequested
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.drift import DriftStarted, DriftThought
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.self_review import SeatAdded

ACTOR: Actor[State] = Actor(
    name="memory",
    scope=Scope.AGENT,
    consumes=(
        InputReceived,
        AppraisalCompleted,
        ArbiterEscalated,
        ActActionsRequested,
        ResponseEmitted,
        ForgetOrdered,
        SeatAdded,
        DriftStarted,
        DriftThought,
    ),
    state_type=State,
    settings_type=MemorySettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
    warm=warm,
)
