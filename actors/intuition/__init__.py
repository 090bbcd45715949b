"""Intuition: rejects inputs that resemble what did harm before.

It decides after reflex has passed an input, with two detectors:

- a *motif*, the signature (set of word triples) of a precedent, an earlier situation, whose outcome was harmful. If its
  similarity to a whole part of the input, or to a passage of it, is strictly above 0.7, the verdict is
  ``intuition.rejected``, with the most similar motif, and its harm level as severity;
- the learned *scorer*, at or above the threshold set for its false-alarm rate; it can be switched off.

Any other input is ``intuition.passed``. Both verdicts list the precedents, harmful or benign, most similar to the
input's text, so that the coherence gate and the arbiter need no index of their own. The input's text and its user, tool
and document layers are judged. The kind of situation, a name that the input's caller chooses, counts in every
comparison but is never a match alone.

An external specialist's answer to an ACT loop, which looks things up (``delegate.answered``), is judged in the same way
before it goes into a prompt: ``intuition.result_rejected`` or ``intuition.result_passed``. Answers of models are not
judged here: precedents describe situations that an agent was put into by the text it received, not what it should not
say. Reflex reads those answers.

Precedents come from people (``precedent.recorded``, ``precedent.withdrawn``) and belong to one agent. Those with a
harmful outcome are announced as ``intuition.motif_learned`` and, when they no longer count,
``intuition.motif_retired``.

**Bounded work.** One input may have a thousand parts, and a thousand motifs may share the words of each. All
comparisons for an input share one work budget, which is counted and not timed. What it did not suffice for is stated in
the verdict (``comparing``). The scorer reads a limited number of characters of an input. Equal parts are judged once,
equal passages compared once.

**A large index in a folded state.** State and index must never disagree. The state holds the precedents, with their
signatures, in a persistent map. Only the map is the state's value, which snapshots keep and hashes cover. Beside the
map, and left out of both, the state carries an ``Index``: a handle on a store that is passed on from state to state:

- ``evolve`` changes the store by one entry, at a mean cost that does not depend on the number of entries (arrays grow
  in proportion to their size). The new state holds the store, and the old state no longer has one.
- A state has no store if it was read from a snapshot, or if its store has moved on to a later state. It builds one
  from the map when it is queried. Building sorts once; it takes seconds for a million precedents.
- For compaction, the handle is dropped when more entries are retired than not; the store built next holds only those
  not retired.

So an answer depends only on the map, never on what else was queried or folded before, in this process or another:
deciding is pure. A property test queries states that diverged, in any order. Ties go to the precedent recorded first,
by a number that is part of the state, since the order of a map differs between processes.

``text_words`` splits a text into words and phrases, ``signature`` makes shingles of them, ``passages`` finds the
passages worth comparing, ``index`` finds the nearest signatures, ``library`` keeps the precedents, ``comparing`` spends
the work budget, ``judging`` builds the verdict.
"""

from actors.intuition.decider import State, decide, evolve, warm
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
    initial=State,
    decide=decide,
    evolve=evolve,
    models=models_of,
    missing_model=missing_model,
    warm=warm,
    # While nothing has asked for an agent's index, imported precedents wait for it: it is then built beside the loop.
    evicts_cache=(PrecedentRecorded, PrecedentWithdrawn),
    led_apart_from="memory",  # both do much work for one agent: two processes should share it
)
