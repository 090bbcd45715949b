"""What the two judges are trained for."""

from deploy.training.fitting import Recipe
from deploy.training.grams import Penalties

SCORER = Recipe(
    kind="scorer",
    without=frozenset({"authored_role_reversal"}),
    penalties=Penalties(whole=0.05, part=0.1),
    benign=0.0015,
    hard=0.008,
)
"""Intuition's scorer: attacks of every kind, above all those a user sends."""

TRUST = Recipe(
    kind="trust",
    without=frozenset({"jailbreak", "authored_persona", "authored_forced_start"}),
    penalties=Penalties(whole=0.3, part=0.5),
    benign=0.001,
    hard=0.003,
)
"""Appraisal's trust evaluator: role reversal, override, extraction, orders in documents; personas are the scorer's."""
