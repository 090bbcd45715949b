"""The responder's settings, and the default texts of its prompts."""

from importlib.resources import files
from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit

Budget = Annotated[int, msgspec.Meta(ge=0, le=16_000)]
"""A limit in tokens, as ``actors.contract.text.shortening`` estimates them."""

LEAST_CONTEXT, MOST_CONTEXT = 512, 10_000_000
"""The smallest and the largest context of a model, in tokens."""

_UNLIMITED = 1_000_000
"""More tokens than any input has: the context is the limit then."""

PromptText = Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]
"""The instructions of a prompt."""


def _shipped(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


class Prompts(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions of a model in each mode; ``rerun``: in addition, if its earlier answer has to be improved.

    ``cautious`` and ``guarded``: in addition, if that is the breaker's stance towards the session.
    """

    respond: PromptText = _shipped("respond")
    clarify: PromptText = _shipped("clarify")
    acknowledge: PromptText = _shipped("acknowledge")
    rerun: PromptText = _shipped("rerun")
    cautious: PromptText = _shipped("cautious")
    guarded: PromptText = _shipped("guarded")


class ResponderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are written, and what is remembered for how long.

    The texts are settings, not names of files: they are recorded with the other settings, so that a replay knows the
    instructions of a model.

    Attributes:
        backend: Who writes the answers; ``composer`` puts them together of fixed sentences, without a language model;
            ``llm``, the default if one is attached, asks it, and leaves the answer to the composer when it fails.
        session_lifetime_ms: A person's words are remembered no longer than this after they were answered,
            and at least half as long: dropped at the partition's first message past it.
        ended_lifetime_ms: A repeated input of an exchange is recognised for at least this long after its end.
        quote_limit: Longest quote of a person's words in an answer, and of a memory, in characters.
        turn_limit: How much is remembered of each side's text in a turn, in characters: its beginning and its end.
        answering_energy: Least energy (strength of recall) of a memory that the composer quotes.
        guardrails: Whether guardrails judge a model's answer before anybody reads it, and have a poor one rerun.
        rerun_least_ms: Time that must be left for asking a model again.
        prompts: What a model is told to do, by mode.
        soul: The text that says who the agent is, in the prompt of a model that responds or clarifies. Empty: no such
            text.
        souls: Agent -> its soul, for agents that have one of their own.
        memory_most: Most memories and findings (what an ACT loop has looked up) of an answer, 0 to 64, the strongest
            first.
        context_tokens: The model's context, for prompt and answer together. `neuraxis up` takes the endpoint's value.
        memory_tokens: Most tokens of memories and findings in a prompt; this and the next two are lower in a small
            context.
        turn_tokens: Most tokens of earlier turns in a prompt.
        draft_tokens: Most tokens of the earlier answer in the prompt of a rerun.
        layer_tokens: Most tokens of the input's other layers in a prompt (documents, tools' results). The context
            limits them in any case, as it does ``input_tokens``.
        input_tokens: Most tokens of the person's own text in a prompt.
        answer_tokens: Most tokens of a model's answer.
        llm_timeout_ms: How long a model may take, if the exchange's deadline leaves that much.
        reserve_ms: Time before an exchange's deadline that is kept for its end: a model is not asked within it.
    """

    backend: Annotated[Literal["composer", "llm"], FOLLOWS_MODEL] = "composer"
    session_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    ended_lifetime_ms: Milliseconds = 600 * 1000
    quote_limit: Annotated[int, msgspec.Meta(ge=20, le=2000)] = 200
    turn_limit: Annotated[int, msgspec.Meta(ge=20, le=8000)] = 600
    answering_energy: Unit = 0.5
    guardrails: bool = True
    rerun_least_ms: Milliseconds = 1_000
    prompts: Prompts = Prompts()
    soul: Annotated[str, msgspec.Meta(max_length=20_000)] = _shipped("soul")
    souls: dict[str, Annotated[str, msgspec.Meta(max_length=20_000)]] = {}
    memory_most: Annotated[int, msgspec.Meta(ge=0, le=64)] = 6
    context_tokens: Annotated[int, msgspec.Meta(ge=LEAST_CONTEXT, le=MOST_CONTEXT)] = 8_192
    memory_tokens: Budget = 512
    turn_tokens: Budget = 512
    draft_tokens: Budget = 256
    layer_tokens: Annotated[int, msgspec.Meta(ge=0, le=_UNLIMITED)] = _UNLIMITED
    input_tokens: Annotated[int, msgspec.Meta(ge=16, le=_UNLIMITED)] = _UNLIMITED
    answer_tokens: Annotated[int, msgspec.Meta(ge=1, le=16_000)] = 512
    llm_timeout_ms: Milliseconds = 30_000
    reserve_ms: Milliseconds = 500
