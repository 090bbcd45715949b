"""Coherence's entropy of an input, calculated again from its recorded parts. Pure.

The entropy, in [0, 1], is how much speaks against what an input asks for. Its parts are ``knowledge`` (the share of
similar precedents that speak against it), ``swarm`` (how badly the actors as a whole work together just now) and the
rules of the constitution that it would violate. The share of the input that was not read raises it, too; a share at or
above a limit counts as 1 (``counted_share``).
"""

from actors.coherence.entropy import counted_share, entropy_of
from actors.coherence.settings import CoherenceSettings
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected

Verdict = CoherencePassed | CoherenceRejected


def weights_of(settings: CoherenceSettings) -> tuple[float, float]:
    """Return the weights of knowledge and of the swarm, scaled to a sum of one."""
    total = settings.knowledge_weight + settings.swarm_weight
    return settings.knowledge_weight / total, settings.swarm_weight / total


def explains(verdict: Verdict, settings: CoherenceSettings) -> bool:
    """Whether these settings lead from the recorded parts to the recorded entropy."""
    if verdict.constitutional:
        return verdict.entropy == 1.0
    share = counted_share(verdict.unread, settings)
    return entropy_of(verdict.knowledge, verdict.swarm, share, settings) == verdict.entropy


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
    mean = f"{knowledge:.3f} × {verdict.knowledge:g} (knowledge) + {swarm:.3f} × {verdict.swarm:g} (swarm)"
    share = counted_share(verdict.unread, chosen)
    return f"= {mean}{f', moved {share:.1%} of the way to 1 (unread)' if share else ''}"
