"""Memory: what an agent remembers, and which memories an input recalls.

For an exchange that goes on to deliberation it records the memories recalled, and how familiar the topic is
(``memory.recalled``). For the actions of an ACT loop, which looks things up before an answer, it records their results
(``memory.actions_answered``). After an exchange that was answered (EXECUTED) it records what is remembered of it
(``memory.remembered``). No model is called: facts, gists (summaries of one line) and concepts are read from the text by
rules, and similarity is that of the embeddings that appraisal recorded.

=========  ======================  ===================  ======================================================
layer      is about                belongs to           ends
=========  ======================  ===================  ======================================================
turn       the latest exchanges    the session          with the fourth exchange after it, or the session
gist       the exchanges of a day  the session          after a day, or with the session
fact       what people stated      the agent            with a later value, or as the oldest of 50 on its topic
episode    single exchanges        the agent            as the oldest of 20,000
concept    terms in episodes       the agent            with its last episode, or as the least recent of 1,000
=========  ======================  ===================  ======================================================

An agent's sessions share what belongs to the agent. The memory of another agent is never read.

**Size and replay.** The episodes are a persistent map, which is state. An index of their embeddings is kept beside it
and is left out of snapshots and hashes. The index is append-only; states that descend from one another share it, and
each queries it as of its own version (``index``). All numbers are integers, or rounded at each step, so that a recall
gives the same bits on every machine (``vectors``, ``decay``).

**Reviews.** Self-review assesses a memory (``trace.seat_added``), which makes the memory rank higher or lower in
recalls (``weights``).

**Wandering.** While nobody talks to the agent, the actor drift asks memory for associations without any input
(``wandering``). The resulting thought (``drift.thought``) is kept as a gist of the agent, named ``drift:7``. Any
session may recall it for a week, and it ends with the episode that it is about (``thoughts``).

**Forgetting** leaves neither the text nor anything derived from it in the state (``forgetting``): every memory records
its session, and every concept its episodes.
"""

from actors.memory.decider import State, decide, evolve, warm
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
    initial=State,
    decide=decide,
    evolve=evolve,
    warm=warm,
)
