"""A call of a language model in words. Pure."""

from collections.abc import Sequence

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.printable import printable
from schemas.effectors.model_calls import Cut, ModelCall

_MAX_CUTS_LISTED = 6
"""How many cut parts are named one by one; the others are added up."""


def call_text(call: ModelCall) -> str:
    """Return what a model is asked for, how long the prompt is, and its limits; none of the words."""
    characters = sum(len(message.content) for message in call.messages)
    asked = f"calls a model for {call.purpose}: {counted(len(call.messages), 'message')} of {characters} characters"
    form = ", as JSON" if call.answer_schema is not None else ""
    cuts = f"; {cuts_text(call.cuts)}" if call.cuts else ""
    return f"{asked}{form}, {call.most_tokens} tokens at most, within {call.timeout_ms / 1000:g} s{cuts}"


def cuts_text(cuts: Sequence[Cut]) -> str:
    """Return which parts of a prompt were cut, and how much of each is left; of many parts, only the first few."""
    shown = cuts if len(cuts) <= _MAX_CUTS_LISTED + 1 else cuts[:_MAX_CUTS_LISTED]
    lines = [_cut_text(printable(cut.part), (cut,)) for cut in shown]
    rest = cuts[len(shown) :]
    return f"cut: {', '.join([*lines, *([_cut_text(f'{len(rest)} more parts', rest)] if rest else [])])}"


def _cut_text(what: str, cuts: Sequence[Cut]) -> str:
    kept, characters = sum(cut.kept for cut in cuts), sum(cut.characters for cut in cuts)
    return f"{what} to {kept:,} of {characters:,} characters"
