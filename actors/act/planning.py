"""Plans what an ACT loop does next: by rules, or by a model. Pure; the prompt is a file beside this one.

The loop gathers information before an exchange is answered, by actions. Each action has a skill: recall memories of a
query, memorize a value, introspect (ask how much memory knows), associate (find terms that occurred together with those
of a query), or delegate a question to a specialist (an external service that answers questions).
"""

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import msgspec

from actors.act.loop import Loop, Outcome, Step
from actors.act.settings import ActSettings
from actors.contract.text.shortening import shorten
from schemas.effectors.model_calls import ChatMessage, ModelCall, Shortened, cuts_of, read_answer
from schemas.vocabulary.act import Action
from schemas.vocabulary.memory import Skill

SKILLS: tuple[Skill, ...] = ("recall", "memorize", "introspect", "associate", "delegate")
"""All skills."""

ALIASES: Mapping[str, Skill] = MappingProxyType(
    {
        "memory_query": "recall",
        "memory_write": "memorize",
        "world_state_read": "introspect",
        "internal_reasoning": "recall",
        "semantic_query": "recall",
    }
)
"""Other names of skills, which a model may use in its plan."""

QUERY_CHARACTERS = 1_000
"""Most characters of a query: no question needs more."""

PLAN_CHARACTERS = 20_000
"""A longer answer of a model is not a plan."""

MOST_TOKENS = 512
"""Most tokens of a model's answer."""

_SEEDS = 3
"""Most findings whose texts are joined into the query of an ``associate`` action, if the rules plan it."""

_SHOWN, _SHOWN_CHARACTERS = 5, 200
"""Findings of an action that the prompt shows, and most characters of each."""

_PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "actions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "skill": {"type": "string", "enum": [*SKILLS, *ALIASES]},
                    "query": {"type": "string"},
                    "key": {"type": "string"},
                    "value": {"type": "string"},
                    "specialist": {"type": "string"},
                },
                "required": ["skill"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["actions"],
    "additionalProperties": False,
}
"""JSON Schema of a plan."""


class PlannedAction(msgspec.Struct, frozen=True):
    """An action as a model writes it; additional fields are ignored."""

    skill: str
    query: str = ""
    key: str = ""
    value: str = ""
    specialist: str = ""


class Plan(msgspec.Struct, frozen=True):
    """The plan in a model's answer."""

    actions: list[PlannedAction]


def offline_plan(text: str, loop: Loop) -> tuple[Action, ...]:
    """Return the next actions by rule: recall the question, associate on what was found, then none.

    Iterations that a model planned before it failed are not counted.
    """
    own = [step for step in loop.steps if step.planner == "offline"]
    if not own:
        return (Action(index=0, skill="recall", query=shorten(text.strip(), QUERY_CHARACTERS, len).text),)
    if len(own) == 1 and loop.findings:
        seeds = "; ".join(each.text for each in loop.findings[:_SEEDS])
        return (Action(index=0, skill="associate", query=seeds[:QUERY_CHARACTERS]),)
    return ()


def plan_call(text: str, loop: Loop, settings: ActSettings) -> ModelCall:
    """Return the question for a model: the person's text, and what the loop has done and found so far."""
    message = shorten(text.strip(), settings.message_tokens)
    lines = [line for number, step in enumerate(loop.steps) for line in _step_lines(number, step)]
    found = [each.text for step in loop.steps for outcome in step.outcomes for each in outcome.found]
    shown = [each for step in loop.steps for outcome in step.outcomes for each in _finding_texts(outcome)]
    kept = sum(len(each.removesuffix("…")) for each in shown)
    findings = Shortened(text="", characters=sum(len(" ".join(each.split())) for each in found), kept=kept)
    request = "\nPlan what comes next." if loop.steps else "\nPlan the first actions."
    content = "\n".join(["The message:", message.text, *lines, request])
    return ModelCall(
        purpose="act",
        messages=(ChatMessage(role="system", content=_PROMPT), ChatMessage(role="user", content=content)),
        most_tokens=MOST_TOKENS,
        answer_schema=ANSWER_SCHEMA,
        timeout_ms=settings.plan_timeout_ms,
        cuts=cuts_of({"text": message, "findings": findings}),
    )


def read_plan(answer: str, settings: ActSettings) -> tuple[Action, ...] | None:
    """Return the actions of a model's plan, the first ``most_actions``; None where it is malformed.

    A plan with an unknown skill, or an action without what its skill needs, is malformed as a whole.
    """
    decoded: Plan | list[PlannedAction] | None = read_answer(answer, Plan | list[PlannedAction], PLAN_CHARACTERS)
    if decoded is None:
        return None
    planned = decoded.actions if isinstance(decoded, Plan) else decoded
    actions = [_action(index, each) for index, each in enumerate(planned[: settings.most_actions])]
    valid = tuple(action for action in actions if action is not None)
    return valid if len(valid) == len(actions) else None


def _action(index: int, planned: PlannedAction) -> Action | None:
    skill = _skill_named(planned.skill)
    query, value, specialist = (each.strip() for each in (planned.query, planned.value, planned.specialist))
    match skill:
        case "recall" | "associate" if query:
            return Action(index=index, skill=skill, query=query[:QUERY_CHARACTERS])
        case "introspect":
            return Action(index=index, skill=skill)
        case "memorize" if value:
            key = planned.key.strip()[:QUERY_CHARACTERS]
            return Action(index=index, skill=skill, key=key, value=value[:QUERY_CHARACTERS])
        case "delegate" if query and specialist:
            specialist = specialist[:QUERY_CHARACTERS]
            return Action(index=index, skill=skill, query=query[:QUERY_CHARACTERS], specialist=specialist)
    return None


def _skill_named(name: str) -> Skill | None:
    return ALIASES.get(name) or next((skill for skill in SKILLS if skill == name), None)


def _step_lines(number: int, step: Step) -> list[str]:
    lines = [line for outcome in step.outcomes for line in _outcome_lines(outcome)]
    return [f"\nIteration {number}{f' ({step.reason})' if step.reason else ''}:", *lines]


def _outcome_lines(outcome: Outcome) -> list[str]:
    performed, action = outcome.performed, outcome.performed.action
    about = _cut(action.query or action.value, _SHOWN_CHARACTERS)
    result = f"found {performed.found}" if performed.ok else performed.reason
    shown = [f"  - {line}" for line in _finding_texts(outcome)]
    return [f"- {action.skill} {about!r}: {result}", *shown, *([f"  {outcome.told}"] if outcome.told else [])]


def _finding_texts(outcome: Outcome) -> list[str]:
    return [_cut(each.text, _SHOWN_CHARACTERS) for each in outcome.found[:_SHOWN]]


def _cut(text: str, most: int) -> str:
    """Return a text on one line, of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
