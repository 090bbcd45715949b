"""The calculation of the router's scores: each mode's terms, from the recorded signals and weights. Pure."""

from collections.abc import Mapping

import msgspec

from actors.router.scoring import contributions, scores_of, with_oscillation_guards
from actors.router.settings import RouterSettings
from schemas.vocabulary.router import Mode, ModeSelected


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
