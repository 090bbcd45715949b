"""A call of a language model in words. Pure."""

from deploy.rendering.counting import counted
from schemas.calls import ModelCall


def told_call(call: ModelCall) -> str:
    """Return what a model is asked for, how much it is shown, and within which bounds; none of the words."""
    characters = sum(len(said.content) for said in call.messages)
    asked = f"calls a model for {call.purpose}: {counted(len(call.messages), 'message')} of {characters} characters"
    form = ", as JSON" if call.answer_schema is not None else ""
    return f"{asked}{form}, {call.most_tokens} tokens at most, within {call.timeout_ms / 1000:g} s"
