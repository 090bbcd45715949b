"""What an exchange comes to in a line: the sentence of a text that says most, and what was answered."""

import re

from schemas.reading.terms import READ, terms_of

SENTENCE_CHARACTERS = 160
ANSWER_CHARACTERS = 120
TURN_CHARACTERS = 400
"""What is kept of either side's words in a turn."""

_CHARACTERS_PER_TOKEN = 4
_SENTENCE_END = re.compile(r"(?<=[.!?\u2026])\s+|\n+")


def shortened(text: str, most: int) -> str:
    """Return a text on one line of at most ``most`` characters; a longer one is cut between words."""
    line = " ".join(text[: 2 * READ].split())
    if len(line) <= most:
        return line
    kept = line[: most - 1]
    return f"{kept.rpartition(' ')[0] or kept}\u2026"


def gist_of(text: str, answer: str) -> str:
    """Return the gist of an exchange: what was asked or said, and what was answered, if that is told; "" of a blank."""
    main = _main_sentence(text)
    if not main:
        return ""
    asked = "Asked" if main.endswith("?") else "Said"
    gist = f"{asked}: {shortened(main, SENTENCE_CHARACTERS)}"
    first = shortened(next(iter(_sentences(answer)), ""), ANSWER_CHARACTERS)
    return f"{gist} Answered: {first}" if first else gist


def tokens_of(text: str) -> int:
    """Return an estimate of a text's length in a model's tokens."""
    return 1 + len(text) // _CHARACTERS_PER_TOKEN


def _main_sentence(text: str) -> str:
    # The one with most terms; of equals a question rather than a statement, and the first.
    return max(_sentences(text), key=lambda sentence: (len(terms_of(sentence)), sentence.endswith("?")), default="")


def _sentences(text: str) -> list[str]:
    return [sentence for part in _SENTENCE_END.split(text[:READ]) if (sentence := part.strip())]
