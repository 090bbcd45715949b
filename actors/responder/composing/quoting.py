"""Quotes people's text: on one line, with limited length, without invisible characters. Pure."""


def quote(text: str, limit: int) -> str:
    """Return the beginning of a text on one line, in at most ``limit`` characters, without invisible ones.

    Reads at most four times the limit, however long the text is.
    """
    stripped = text.strip()
    window = stripped[: 4 * limit]
    line = " ".join(window.split())
    if not line.isprintable():
        # Format characters (bidirectional marks, zero widths) could make a quote look like something that was not said.
        line = " ".join("".join(each if each.isprintable() else " " for each in line).split())
    if len(line) <= limit and len(window) == len(stripped):
        return line
    return line[: limit - 1].rstrip() + "…"
