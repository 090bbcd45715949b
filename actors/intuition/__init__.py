"""Intuition: rejects inputs that resemble what did harm before (source R 3, reflex escalation).

It decides when reflex has passed an input, by two detectors:

- a *motif*, the signature of a precedent whose outcome was harmful: a similarity strictly above 0.7, to the whole of a
  part of the input or to a passage of it, is ``intuition.rejected`` with the most similar motif and its harm level as
  severity;
- the learned *scorer*, at or above the threshold fixed for its false-alarm rate; it can be switched off.

Any other input is ``intuition.passed``. Both verdicts list the precedents, harmful or benign, most similar to the
input's text, so that the coherence gate and the arbiter need no index of their own. The input's text and its user, tool
and document layers are judged; the situation's type counts in every comparison and never makes a match alone.

What a specialist answers to ACT (``delegate.answered``) is judged likewise before it goes into a prompt:
``intuition.result_rejected`` or ``intuition.result_passed``. Answers of models are not: precedents tell of situations
that an agent was put into, by words that reach it, and not of what it should not say; reflex reads those.

Precedents come from people (``precedent.recorded``, ``precedent.withdrawn``) and belong to one agent. Those of harmful
outcome are announced as ``intuition.motif_learned`` and, when they count no more, ``intuition.motif_retired``.

**Bounded work.** One input may have a thousand parts, and a thousand motifs the words of each. All that is compared for
an input shares one allowance, counted and not timed, and what it did not suffice for is in the verdict (``comparing``);
the scorer reads so many characters of an input and no more. Equal parts are judged once, equal passages compared once.

**A large index in a folded state.** State and index must not be two truths. The state holds the precedents, with their
signatures, in a persistent map: that alone is its value, what snapshots keep and hashes cover. Beside the map, and left
out of both, it carries an ``Index``, a handle on a store that is handed on from state to state:

- ``evolve`` changes the store by one entry, at a mean cost that does not depend on how many there are (arrays grow by
  shares of themselves), and the new state holds it. The old state holds none any more.
- For a state that is asked, or extended in another way, when its store has moved on, and for one read from a snapshot,
  the first question builds a store from the map. Building sorts once; it takes seconds for a million precedents.
- Compaction is the same: when more is retired than counts, the handle is dropped, and what is built next holds only
  what counts.

So an answer depends on the map alone, never on what else was asked or folded before, in this process or another:
deciding is pure, and a property test asks states that went different ways, in any order. Ties go to the precedent
recorded first, by a number that is part of the state, since a map's own order differs from process to process.

``text_words`` splits a text into words and phrases, ``signature`` makes shingles of them, ``passages`` finds the
passages worth comparing, ``index`` finds the nearest signatures, ``library`` keeps the precedents, ``comparing`` spends
the allowance, ``judging`` puts the verdict together.
"""

from actors.intuition.decider import State, decide, evolve, initial, warm
from actors.intuition.judging import missing_model, models_of
from actors.intuition.settings import IntuitionSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.delegate import DelegateAnswered
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn
from schemas.vocabulary.reflex import ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[State] = Actor(
    name="intuition",
    scope=Scope.AGENT,
    consumes=(
        InputReceived,
        ReflexPassed,
        DelegateAnswered,
        PrecedentRecorded,
        PrecedentWithdrawn,
        AllowanceRecorded,
        AllowanceWithdrawn,
        ResponseEmitted,
    ),
    state_type=State,
    settings_type=IntuitionSettings,
    initial=initial,
    decide=decide,
    evolve=evolve,
    models=models_of,
    missing_model=missing_model,
    warm=warm,
)
