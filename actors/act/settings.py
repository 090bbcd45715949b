"""Settings of the ACT loop, which gathers information before an exchange is answered."""

from typing import Annotated

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit
from schemas.vocabulary.act import Planner
from schemas.vocabulary.memory import Skill

SmallCount = Annotated[int, msgspec.Meta(ge=1, le=100)]
"""A count that is kept small, such as of findings in an answer."""


class ActSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop decides with.

    Attributes:
        planner: ``offline`` plans by rules; ``llm``, the default if a model is attached, asks it, and the rules take
            over when the model fails.
        timeout_ms: A loop that has run this long does not continue.
        answering_ms: A loop whose exchange has no more than this left before its deadline does not continue either: the
            time is for routing again, and for the answer. So with a deadline of 75 seconds or more a loop has all of
            ``timeout_ms``.
        deadline_share: If an exchange has little time, a loop may take this share of what was left when it began, and
            ``answering_ms`` is reduced.
        max_iterations: A loop with this many iterations does not continue.
        plan_timeout_ms: How long a model may take for a plan, retries included.
        message_tokens: Most tokens of the person's text that a model sees for planning; of a longer one, its beginning,
            its end and the questions between.
        recall_ms: Time budget of an action with the skill ``recall``; the four after it are those of the other skills.
            An action over its budget fails; the loop goes on.
        most_actions: Most actions of a plan that are performed; a longer plan is cut.
        most_findings: Most findings that a loop reports, the strongest first.
        ended_lifetime_ms: A repeated input is recognised for at least this long after its exchange's end.
    """

    planner: Annotated[Planner, FOLLOWS_MODEL] = "offline"
    timeout_ms: Milliseconds = 60_000
    answering_ms: Milliseconds = 15_000
    deadline_share: Unit = 0.6
    max_iterations: SmallCount = 5
    plan_timeout_ms: Milliseconds = 15_000
    message_tokens: Annotated[int, msgspec.Meta(ge=64, le=100_000)] = 1_000
    recall_ms: Milliseconds = 500
    memorize_ms: Milliseconds = 50
    introspect_ms: Milliseconds = 100
    associate_ms: Milliseconds = 500
    delegate_ms: Milliseconds = 5_000
    most_actions: SmallCount = 5
    most_findings: SmallCount = 12
    ended_lifetime_ms: Milliseconds = 600 * 1000

    def budget_ms(self, skill: Skill) -> int:
        """Return how long an action of a skill may take."""
        match skill:
            case "recall":
                return self.recall_ms
            case "memorize":
                return self.memorize_ms
            case "introspect":
                return self.introspect_ms
            case "associate":
                return self.associate_ms
            case "delegate":
                return self.delegate_ms
