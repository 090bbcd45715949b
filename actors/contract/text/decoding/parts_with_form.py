"""The parts of a long text in which a form was seen: ordinary texts have a little of many, and are plain elsewhere."""

from collections.abc import Iterable

WHOLE = 4_096
"""Characters up to which a text is undone as a whole."""

AROUND = 256
"""Characters on either side of what was seen that are undone with it: words there may need no disguise."""


def stretches_of(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return what lies around some ascending spans of a text, a stretch a line; of a short text all."""
    if len(text) <= WHOLE:
        return text
    parts: list[str] = []
    begin = end = -1
    for start, stop in spans:
        if end >= 0 and start - AROUND > end:
            parts.append(text[begin:end])
            begin = -1
        begin = max(0, start - AROUND) if begin < 0 else begin
        end = min(len(text), stop + AROUND)
    if end >= 0:
        parts.append(text[begin:end])
    return "\n".join(parts)
