"""A call of a language model in words. Pure."""

from collections.abc import Iterable

from deploy.rendering.counting import counted
from deploy.rendering.printable import printable
from schemas.calls import Cut, ModelCall


def told_call(call: ModelCall) -> str:
    """Return what a model is asked for, how much it is shown, and within which bounds; none of the words."""
    characters = sum(len(said.content) for said in call.messages)
    asked = f"calls a model for {call.purpose}: {counted(len(call.messages), 'message')} of {characters} characters"
    form = ", as JSON" if call.answer_schema is not None else ""
    cuts = f"; {told_cuts(call.cuts)}" if call.cuts else ""
    return f"{asked}{form}, {call.most_tokens} tokens at most, within {call.timeout_ms / 1000:g} s{cuts}"


def told_cuts(cuts: Iterable[Cut]) -> str:
    """Return what was cut of a prompt, and how much of it is left."""
    told = (f"{printable(cut.part)} to {cut.kept:,} of {cut.characters:,} characters" for cut in cuts)
    return f"cut: {', '.join(told)}"
