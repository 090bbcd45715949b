"""Coherence's entropy of an input, calculated again from its recorded parts. Pure."""

from actors.coherence.settings import CoherenceSettings
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected

Verdict = CoherencePassed | CoherenceRejected


def weights_of(settings: CoherenceSettings) -> tuple[float, float]:
    """Return the weights of knowledge and of the swarm, scaled to a sum of one."""
    both = settings.knowledge_weight + settings.swarm_weight
    return settings.knowledge_weight / both, settings.swarm_weight / both


def explains(verdict: Verdict, settings: CoherenceSettings) -> bool:
    """Whether these settings lead from the recorded parts to the recorded entropy."""
    if verdict.constitutional:
        return verdict.entropy == 1.0
    weighed = settings.knowledge_weight * verdict.knowledge + settings.swarm_weight * verdict.swarm
    return round(weighed / (settings.knowledge_weight + settings.swarm_weight), 6) == verdict.entropy


def sum_of(verdict: Verdict, settings: CoherenceSettings | None = None) -> str:
    """Return how the entropy is made of its parts, as a sum.

    Args:
        verdict: The recorded verdict.
        settings: The settings in force then, since weights are not recorded with each verdict. None: the defaults.
    """
    chosen = settings or CoherenceSettings()
    if not explains(verdict, chosen):
        return "the parts do not make the recorded entropy: decided with other weights"
    if verdict.constitutional:
        return "1 whatever the other parts, for what it would violate"
    knowledge, swarm = weights_of(chosen)
    return f"= {knowledge:.3f} × {verdict.knowledge:g} (knowledge) + {swarm:.3f} × {verdict.swarm:g} (swarm)"
