"""The path of an input: the order in which actors and effectors work on it, and which of them every input needs.

They are stages, as is the ledger's projector: what workers serve.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from schemas.actor import Scope
from schemas.catalogue import CATALOGUE
from schemas.event import Configured, Failed
from schemas.subjects import Partitions
from schemas.vocabulary.responder import Stage

WHOLE = "all"
"""Name of the only partition of a stage that has just one."""

LEDGER = "ledger"
"""The ledger's projector as a stage; it is neither an actor nor an effector."""

STAGE_OF: Mapping[str, Stage] = {
    "reflex": "REFLEX",
    "intuition": "INTUITION",
    "appraisal": "COHERENCE",
    "coherence": "COHERENCE",
    "breaker": "BREAKER",
    "arbiter": "ARBITER",
    "memory": "DELIBERATIVE",
    "router": "DELIBERATIVE",
    "act": "DELIBERATIVE",
}
"""Actor -> the ``Stage`` of a ``response.emitted`` that it leads to, in the order of the path.

Such a stage, in capitals, is the part of the path at which an exchange ended. Several actors may share one.
"""

GUARDS = tuple(actor for actor, stage in STAGE_OF.items() if stage != "DELIBERATIVE")
"""The guards, and appraisal, by whose numbers some of them decide: what an input passes before a mode (how it is
answered) is selected for it."""

PATH = (*STAGE_OF, "llm", "delegate", "guardrails", "responder")
"""The owners that an input passes on its way to an answer, in order."""

ON_DEMAND: Mapping[str, str] = {
    "act": "no choice of the mode ACT called on it",
    "llm": "nothing asked a model",
    "delegate": "no action asked a specialist",
    "guardrails": "no answer was to be judged",
}
"""The owners of the path that only some inputs pass -> why an input did not pass them."""

REQUIRED = (*(owner for owner in PATH if owner not in ON_DEMAND), "clock")
"""The actors that every input needs, and the clock, which ends an exchange when another actor is silent."""

WITNESSES = ("swarm", "alerts")
"""The actors that report an actor that is not served. Every worker of actors runs them while nobody else does."""


@cache
def scopes() -> Mapping[str, Scope]:
    """Return every stage that can be served and the key that it is sharded by, sorted by name.

    An actor's scope is that of its ``configured`` event in the catalogue. Effectors and the ledger have one partition
    each.
    """
    found = {LEDGER: Scope.GLOBAL}
    for entry in CATALOGUE.values():
        if issubclass(entry.event, Configured):
            found[entry.owner] = entry.scope
        elif issubclass(entry.event, Failed):
            found.setdefault(entry.owner, Scope.GLOBAL)
    return dict(sorted(found.items()))


def names_of(scope: Scope, partitions: Partitions) -> tuple[str, ...]:
    """Return the names of a stage's partitions."""
    if scope is Scope.GLOBAL:
        return (WHOLE,)
    return partitions.tokens(scope is Scope.SESSION)


def token_of(scope: Scope, partitions: Partitions, agent: str, session: str) -> str:
    """Return the name of the partition that serves an exchange."""
    if scope is Scope.GLOBAL:
        return WHOLE
    return partitions.session_token(session) if scope is Scope.SESSION else partitions.agent_token(agent)


def token_among(names: Sequence[str], scope: Scope, count: int, agent: str, session: str) -> str:
    """Return which of some partitions, of ``count`` in all, serves an exchange; empty if none of them does.

    The names are of partitions of the same counts, those in force or former ones (``schemas.subjects.Partitions``): no
    two of them end in the same number.
    """
    number = token_of(scope, Partitions(agents=count, sessions=count), agent, session)
    return next((name for name in names if name.rpartition("-")[2] == number), "")
