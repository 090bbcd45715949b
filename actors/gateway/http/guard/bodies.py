"""The bodies of checks: inputs in our own shape or OpenAI's, and verdicts with the numbers behind them."""

from typing import Annotated, Any, Literal

import msgspec

from actors.gateway.external_events import InvalidField
from actors.gateway.http.bodies import Name
from actors.gateway.input_parts import InputParts
from schemas.vocabulary.responder import Action, Stage

MOST_INPUTS = 128
"""Most inputs of one request."""

ModelName = Annotated[str, msgspec.Meta(max_length=200)]
"""The name of a model, which a request in OpenAI's shape may give."""


class GuardInput(InputParts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input to be checked: what the user says, and what else goes into the prompt.

    Without a ``session`` it gets a new one, so that earlier inputs do not count.
    """

    text: str = ""
    session: Name | None = None
    agent: Name | None = None


class GuardRequest(GuardInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input to be checked, or several as ``inputs``; ``agent`` and ``session`` then hold for inputs without one."""

    inputs: Annotated[tuple[GuardInput, ...], msgspec.Meta(min_length=1, max_length=MOST_INPUTS)] | None = None


class GuardVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The guards' verdict on an input.

    ``allowed``: every guard let it pass. ``stage``, ``action`` and ``reason`` say how its exchange ended
    (docs/decisions-explained.md), and ``sentence`` says the same in words. ``numbers`` are what the guards recorded
    about it, by the public subject of the event (below its root), without people's words. A guard is missing there if
    an earlier one refused.
    """

    exchange: str
    allowed: bool
    stage: Stage
    action: Action
    reason: str
    sentence: str
    numbers: dict[str, dict[str, Any]]


class GuardVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on all inputs of a request, in their order. ``allowed``: all of them are allowed."""

    status: Literal["success"] = "success"
    allowed: bool
    results: tuple[GuardVerdict, ...]


class TextPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of an input in OpenAI's shape; images are not accepted, since no guard reads them."""

    type: Literal["text"]
    text: str


class ModerationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request in the shape of OpenAI's moderations: a list of text parts is one input, a list of texts several."""

    input: str | Annotated[tuple[str | TextPart, ...], msgspec.Meta(min_length=1, max_length=MOST_INPUTS)]
    model: ModelName | None = None


class ModerationDecision(msgspec.Struct, frozen=True, kw_only=True):
    """How an exchange ended; OpenAI's shape has no fields for it."""

    exchange: str
    stage: Stage
    action: Action
    reason: str
    sentence: str


class ModerationResult(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict in the shape of OpenAI's moderations.

    ``categories`` says what the input was refused for; ``category_scores`` has the numbers that guards gave. A category
    without a number was not examined.
    """

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]
    neuraxis: ModerationDecision


class Moderation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer in the shape of OpenAI's moderations."""

    id: str
    model: str
    results: tuple[ModerationResult, ...]


def inputs_of(body: GuardRequest) -> tuple[tuple[str, GuardInput], ...]:
    """Return the inputs of a request, each with its path in the body (empty: the body itself).

    Raises:
        InvalidField: it has ``inputs``, and an input of its own beside them.
    """
    if body.inputs is None:
        found: tuple[tuple[str, GuardInput], ...] = (("", body),)
    else:
        beside = next((name for name in ("text", *InputParts.__struct_fields__) if getattr(body, name)), "")
        if beside:
            raise InvalidField(beside, f"{beside} stands beside inputs: put it into one of them")
        found = tuple((f"inputs[{index}]", _with_defaults(each, body)) for index, each in enumerate(body.inputs))
    return found


def texts_of(body: ModerationRequest) -> tuple[str, ...]:
    """Return the texts of a request, one for each result.

    Raises:
        InvalidField: texts and parts are mixed.
    """
    if isinstance(body.input, str):
        return (body.input,)
    texts = tuple(each for each in body.input if isinstance(each, str))
    if not texts:
        return ("\n".join(each.text for each in body.input if isinstance(each, TextPart)),)
    if len(texts) < len(body.input):
        raise InvalidField("input", "input mixes texts and parts: give the ones or the others")
    return texts


def _with_defaults(each: GuardInput, body: GuardRequest) -> GuardInput:
    return msgspec.structs.replace(each, session=each.session or body.session, agent=each.agent or body.agent)
