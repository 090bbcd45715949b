"""The coherence gate: does a thought fit what is known, the swarm and the constitution?

A thought is what an input would lead to: a proposed action, with its risks. The swarm is all actors and agents
together; its coherence index, from 0 to 1, says how far they agree. The constitution forbids harm, and changes of the
system's own rules. Entropy, here, is no measure of information: it says how badly a thought fits, from 0 to 1. The gate
joins ``intuition.passed`` and ``appraisal.completed`` of an exchange, in either order, with the flags of its
``reflex.passed`` and the latest ``swarm.measured`` (a coherence index of 1.0 before the first), and decides once:

- a sign of a constitutional violation makes entropy exactly 1.0: a risk of harm, a risk to the system's own rules
  (``layer_0``), or a FLAG signature (a pattern of reflex that is reported and does not block);
- otherwise entropy = (0.4 knowledge + 0.3 swarm) / 0.7, the mean of the two by weight;
- if reflex or intuition could not look at a share s of the input, because their work is bounded, entropy e becomes
  e + s (1 - e), with the largest such share; if that is 0.9 or more, entropy becomes 1. Otherwise an attacker could
  pass the gate by using up a bound;
- entropy strictly above 0.8 leads to ``coherence.rejected``, which ends the exchange; else to ``coherence.passed``.

Knowledge is the share of similar precedents (earlier situations with their outcome) that contradict the thought, and
0.5 if there are none. A precedent contradicts if its action has the opposite polarity (withholding against answering or
acting), or if it has the same polarity and its outcome was harmful. Without the second rule, a precedent that did harm
would count in favour of doing the same again. Which precedents are similar is decided by intuition, which alone holds
their index; each one that it reports counts the same.

Swarm is 1 - index, plus 0.2 if the thought would affect the swarm, at most 1.
"""

from actors.coherence.decider import CoherenceState, decide, evolve
from actors.coherence.settings import CoherenceSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.intuition import IntuitionPassed
from schemas.vocabulary.reflex import ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import SwarmMeasured

ACTOR: Actor[CoherenceState] = Actor(
    name="coherence",
    scope=Scope.SESSION,
    consumes=(ReflexPassed, IntuitionPassed, AppraisalCompleted, SwarmMeasured, ResponseEmitted),
    state_type=CoherenceState,
    settings_type=CoherenceSettings,
    initial=CoherenceState,
    decide=decide,
    evolve=evolve,
)
