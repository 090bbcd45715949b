"""The numbers of coherence and of the router, calculated again from what is recorded of a decision. Pure.

Coherence's entropy of an input, in [0, 1], is how much speaks against what the input asks for. Its parts are
``knowledge`` (the share of similar precedents that speak against it), ``swarm`` (how badly the actors as a whole work
together just now) and the rules of the constitution that it would violate. The share of the input that was not read
raises it, too; a share at or above a limit counts as 1 (``counted_share``). A mode's score is the sum of its terms, one
for each weight of the router.
"""

from collections.abc import Mapping

import msgspec

from actors.coherence.entropy import counted_share, entropy_of
from actors.coherence.settings import CoherenceSettings
from actors.router.scoring import contributions, scores_of, with_oscillation_guards
from actors.router.settings import RouterSettings
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.router import Mode, ModeSelected

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


class ModeScore(msgspec.Struct, frozen=True):
    """A mode's terms by weight name, their sum, and the score that was recorded.

    The weights ``guard.*`` keep modes from alternating: one lowers ACT after it found nothing, one raises RESPOND after
    a question.
    """

    mode: Mode
    terms: Mapping[str, float]
    total: float
    recorded: float


def score_table(selected: ModeSelected, settings: RouterSettings | None = None) -> tuple[ModeScore, ...]:
    """Return the terms of every recorded score, the best first; empty if this release lacks a weight that was used.

    Args:
        selected: The recorded decision.
        settings: The settings in force then, since thresholds are not recorded with each decision. None: the defaults.
    """
    chosen = settings or RouterSettings()
    try:
        terms = contributions(selected.signals, selected.weights, chosen.thresholds, chosen.saturation)
        # It is not recorded either whether an ACT loop had found nothing, but ACT's score shows it: try both.
        attempts = [
            with_oscillation_guards(terms, selected.weights, selected.previous_mode, unproductive)
            for unproductive in (False, True)
        ]
    except KeyError:
        return ()
    if len(selected.scores) == 1:
        attempts = [terms]  # a blank input is not scored
    tables = [_table(attempt, selected.scores) for attempt in attempts]
    return next((table for table in tables if adds_up(table)), tables[0])


def adds_up(table: tuple[ModeScore, ...]) -> bool:
    """Whether every sum is the recorded score."""
    return all(score.total == score.recorded for score in table)


def _table(terms: Mapping[Mode, dict[str, float]], recorded: Mapping[str, float]) -> tuple[ModeScore, ...]:
    totals = scores_of(dict(terms))
    scored = [ModeScore(mode, terms[mode], totals[mode], recorded[mode]) for mode in terms if mode in recorded]
    return tuple(sorted(scored, key=lambda score: -score.recorded))
