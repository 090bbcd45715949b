"""The training recipes of the two judges."""

from deploy.training.judge_fitting import Recipe

SCORER = Recipe(
    kind="scorer",
    without=frozenset({"authored_role_reversal"}),
    penalty=0.1,
    rounds=2,
    benign=0.002,
    hard=0.01,
)
"""Intuition's scorer: attacks of every kind, above all those a user sends."""

TRUST = Recipe(
    kind="trust",
    without=frozenset({"jailbreak", "authored_persona", "authored_forced_start", "authored_published_techniques"}),
    penalty=0.2,
    rounds=1,
    benign=0.002,
    hard=0.01,
    stressed=frozenset({"authored_role_reversal", "authored_override"}),
)
"""Appraisal's trust evaluator: role reversal, override, extraction, orders in documents; personas are the scorer's.

The breaker's own cases, role reversal and override, are stressed: few rows of the corpora have the first, and it is
what the breaker is for.
"""
