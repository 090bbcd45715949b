"""The training recipes of the two judges, intuition's scorer and appraisal's trust evaluator."""

from deploy.training.judge_fitting import Recipe

SCORER = Recipe(
    kind="scorer",
    without=frozenset({"authored_role_reversal"}),
    penalty=0.1,
    rounds=2,
    benign=0.002,
    hard=0.01,
)
"""Intuition's scorer learns attacks of every kind, above all those that a user sends."""

TRUST = Recipe(
    kind="trust",
    without=frozenset({"jailbreak", "authored_persona", "authored_forced_start", "authored_published_techniques"}),
    penalty=0.2,
    rounds=1,
    benign=0.002,
    hard=0.01,
    stressed=frozenset({"authored_role_reversal", "authored_override"}),
)
"""Appraisal's trust evaluator learns role reversal, override, extraction and orders in documents, but not personas.

Role reversal and override are stressed, that is, weighted more: the breaker decides by them, and the corpora have few
rows of the first.
"""
