"""Builds the prompt of a model: instructions, earlier turns, and the person's text with the data sent with it. Pure.

Only texts of this package and of the operator are instructions. Memories and the input's other layers (documents, say)
are other people's text, whatever they claim to be. They are part of the user's message, in blocks between lines with a
key that occurs in none of them, so that no text can end its own block.

A *rerun* is another pass of a deliberation, which guardrails order to improve the answer. The breaker's *stance* says
how careful answers to a session have to be. A mode is *terminal* if it ends the exchange: all but ACT, which looks
things up first.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files

import msgspec

from actors.contract.text.shortening import estimate, shorten
from actors.responder.composing.fitting import (
    LEAST_BLOCK,
    cut_of_memories,
    cut_of_turns,
    instructions,
    latest,
    text_and_layers,
    token_budget,
)
from actors.responder.composing.memories import DELIMITER_TOKENS, entities_of, memories_of, not_in_turns
from actors.responder.pending import ExchangeContext, Turn
from schemas.effectors.model_calls import ChatMessage, ModelCall, Purpose, Shortened, cuts_of
from schemas.vocabulary.guardrails import GuardrailsRerunOrdered, Trigger
from schemas.vocabulary.responder import ResponseRequested
from schemas.vocabulary.router import Mode
from schemas.wording.delimited_blocks import Block, delimited_blocks

PURPOSES: Mapping[Mode, Purpose] = {"RESPOND": "respond", "CLARIFY": "clarify", "ACKNOWLEDGE": "acknowledge"}
"""The modes that a model answers in, and the purpose of the call."""

WITH_SOUL: frozenset[Purpose] = frozenset({"respond", "clarify"})
"""The purposes whose prompts include the agent's soul (the text that says who the agent is)."""

IMPROVEMENTS: Mapping[Trigger, str] = msgspec.json.decode(
    files(__package__).joinpath("rerun_improvements.json").read_bytes(), type=dict[Trigger, str]
)
"""Trigger of a rerun -> what the model is told to improve."""

_HASH_CHARACTERS = 12
"""Length of the hashes that name the instructions in the record of a request."""

_NS_PER_MS = 1_000_000


def time_to_ask(context: ExchangeContext) -> int:
    """Return how many milliseconds a model has for its answer; zero or less where it is too late to ask."""
    left = (context.pending.due_ns - context.now_ns) // _NS_PER_MS - context.settings.reserve_ms
    return min(left, context.settings.llm_timeout_ms)


def soul_of(context: ExchangeContext) -> str:
    """Return the soul of an exchange's agent (the text that says who it is); empty if none is set."""
    return context.settings.souls.get(context.agent, context.settings.soul).strip()


def request_for(context: ExchangeContext, mode: Mode) -> ResponseRequested:
    """Return the request for an answer in ``mode``, which must be one of :data:`PURPOSES`."""
    return _request(context, mode, Pass(context.exchange if context.settings.guardrails else ""))


def request_again(context: ExchangeContext, ordered: GuardrailsRerunOrdered) -> ResponseRequested:
    """Return the request for a better answer than the last one, which is shown with what must be improved."""
    pending = context.pending
    mode = pending.selected.terminal_mode if pending.selected is not None else None
    assert mode is not None, "guardrails judge answers in a terminal mode"
    reason, earlier = ordered.trace.rerun_reason, pending.drafts[-1].text
    instruction = "\n".join([context.settings.prompts.rerun, *rerun_instruction(ordered.trace.rerun_trigger)])
    return _request(context, mode, Pass(ordered.new_loop_id, reason, instruction, earlier))


def rerun_instruction(triggers: Iterable[Trigger]) -> list[str]:
    """Return what must be improved, one line for each trigger of the rerun."""
    return [f"- {IMPROVEMENTS[trigger]}" for trigger in triggers if trigger in IMPROVEMENTS]


class Pass(msgspec.Struct, frozen=True):
    """A pass of a deliberation: the name of its loop, by which guardrails judge it; for a rerun also the reason, what
    to improve, and the earlier answer.
    """

    loop_id: str
    reason: str = ""
    instruction: str = ""
    earlier: str = ""


def _request(context: ExchangeContext, mode: Mode, loop: Pass) -> ResponseRequested:
    settings, pending, purpose = context.settings, context.pending, PURPOSES[mode]
    texts: dict[str, str] = {purpose: getattr(settings.prompts, purpose)}
    soul = soul_of(context)
    if purpose in WITH_SOUL and soul:
        texts["soul"] = soul
    if pending.stance in ("cautious", "guarded"):
        texts[pending.stance] = getattr(settings.prompts, pending.stance)
    if loop.instruction:
        texts["rerun"] = loop.instruction
    instruction_text = instructions(texts, settings)
    system = "\n\n".join(each.text for each in instruction_text.values())
    budget = token_budget(settings, estimate(system))
    # A person who works on the agent's instructions must not be shown its memories.
    memories = () if pending.stance == "guarded" else memories_of(context, budget.memories)
    turns = latest(context.turns, budget.turns)
    conversation = _conversation(turns)
    remembered = _memory_block([each.line for each in not_in_turns(memories, turns)])
    draft = _draft_block(loop.earlier, budget.draft)
    others = [
        *(message.content for message in conversation),
        *(body for _, body in (*remembered, *_kept_blocks(draft))),
    ]
    left = budget.left - sum(map(estimate, others)) - DELIMITER_TOKENS * (len(remembered) + len(draft))
    text, layers = text_and_layers(pending.text, pending.layers, left, settings)
    messages = (
        ChatMessage(role="system", content=system),
        *conversation,
        ChatMessage(
            role="user", content=with_data(text.text, [*remembered, *_kept_blocks(layers), *_kept_blocks(draft)])
        ),
    )
    cuts = (
        *cuts_of(
            {"text": text, **layers, **draft, **{f"prompt {name}": each for name, each in instruction_text.items()}}
        ),
        *cut_of_turns(context.turns, turns),
        *(cut_of_memories(context, memories) if pending.stance != "guarded" else ()),
    )
    return ResponseRequested(
        mode=mode,
        call=ModelCall(
            purpose=purpose,
            messages=messages,
            most_tokens=budget.answer,
            timeout_ms=time_to_ask(context),
            stream_to=pending.reply_to if pending.stream else "",
            cuts=cuts,
        ),
        entities=entities_of(memories),
        prompts={name: sha256(each.encode()).hexdigest()[:_HASH_CHARACTERS] for name, each in texts.items()},
        loop_id=loop.loop_id,
        rerun_reason=loop.reason,
    )


def with_data(text: str, blocks: Sequence[Block]) -> str:
    """Return a person's text after the blocks of data that belong to it; without blocks, the text alone."""
    if not blocks:
        return text
    return "\n\n".join([*delimited_blocks(blocks, [text]), text])


def _memory_block(lines: Sequence[str]) -> list[Block]:
    return [("memory, strongest first", "\n".join(lines))] if lines else []


def _draft_block(text: str, tokens: int) -> dict[str, Shortened]:
    most = tokens - DELIMITER_TOKENS
    shown = shorten(text, most) if most >= LEAST_BLOCK else Shortened("", len(text), 0)
    return {"your earlier answer, set aside": shown} if text else {}


def _kept_blocks(parts: Mapping[str, Shortened]) -> list[Block]:
    return [(name, each.text) for name, each in parts.items() if each.kept]


def _conversation(turns: Sequence[Turn]) -> list[ChatMessage]:
    roles = [
        (ChatMessage(role="user", content=turn.said), ChatMessage(role="assistant", content=turn.answered))
        for turn in turns
    ]
    return [message for pair in roles for message in pair]
