"""The gist of an exchange, a summary in one line: the text's main sentence, the facts noted, and the answer.

It is also the text of the exchange's episode, which is remembered for longer.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from actors.contract.text.folding import fold
from actors.contract.text.terms import MOST_READ, terms_of

SENTENCE_CHARACTERS = 160
"""Most characters of the main sentence, and of the facts noted, in a gist."""

ANSWER_CHARACTERS = 120
"""Most characters of the answer in a gist."""

TURN_CHARACTERS = 400
"""Most characters of either side's text that are kept in a turn, one of a session's latest exchanges."""

_CHARACTERS_PER_TOKEN = 4
"""An estimate for English text."""

_ASKED, _SAID, _NOTED, _ANSWERED = "Asked: ", "Said: ", " Noted: ", " Answered: "
"""Marks in the text of a gist."""

_TURNS_ANSWER = " \u2192 "
"""The mark before the answer in the text of a turn."""

_WORD = re.compile(r"\w+")
_REQUEST = re.compile(
    r"(?:(?:please|hi|hello|hey|ok|okay|now|and|so|then|also)\W+)*(?:who|whom|whose|what|what's|when|where|where's|why|how|which|"
    r"is|are|am|do|does|did|can|could|would|will|should|tell|show|give|explain|describe|list|write|find|recommend|suggest|"
    r"make|help|say|define|compare|summari[sz]e|translate|fix|create|generate|plan|draft)\b",
    re.I,
)
"""The beginning of a question or a request."""

_SENTENCE_END = re.compile(r"(?<=[.!?\u2026])\s+|\n+")


def shorten(text: str, most: int) -> str:
    """Return a text on one line of at most ``most`` characters; a longer one is cut between words."""
    line = " ".join(text[: 2 * MOST_READ].split())
    if len(line) <= most:
        return line
    kept = line[: most - 1]
    return f"{kept.rpartition(' ')[0] or kept}\u2026"


def gist_of(text: str, answer: str, noted: Sequence[str] = ()) -> str:
    """Return the gist of an exchange; "" for a blank one.

    It holds what was asked or said, the facts that were ``noted`` on request meanwhile, and the answer if there is one.
    """
    main = _main_sentence(text)
    if not main:
        return ""
    gist = f"{_ASKED if main.endswith('?') else _SAID}{shorten(main, SENTENCE_CHARACTERS)}"
    if noted:
        gist = f"{gist}{_NOTED}{shorten('; '.join(noted), SENTENCE_CHARACTERS)}."
    first = shorten(next(iter(_sentences(answer)), ""), ANSWER_CHARACTERS)
    return f"{gist}{_ANSWERED}{first}" if first else gist


@lru_cache(maxsize=4096)
def persons_words(text: str) -> str:
    """Return what a person said or asked in a turn, a gist or an episode, without the answer, for comparing."""
    said = text.partition(_ANSWERED)[0].partition(_TURNS_ANSWER)[0]
    return " ".join(_WORD.findall(fold(said.removeprefix(_ASKED).removeprefix(_SAID))))


@lru_cache(maxsize=4096)
def states_nothing(text: str) -> bool:
    """Whether a person stated nothing in a turn, a gist or an episode; the rest of it is the agent's own answer."""
    said = text.partition(_ANSWERED)[0].partition(_TURNS_ANSWER)[0]
    if _NOTED in said:
        return False
    main = _main_sentence(said.removeprefix(_ASKED).removeprefix(_SAID))
    return main.endswith("?") or _REQUEST.match(main) is not None


def tokens_of(text: str) -> int:
    """Return an estimate of a text's length in a model's tokens."""
    return 1 + len(text) // _CHARACTERS_PER_TOKEN


def _main_sentence(text: str) -> str:
    # The sentence with most terms; among equals a question before a statement, then the first.
    return max(_sentences(text), key=lambda sentence: (len(terms_of(sentence)), sentence.endswith("?")), default="")


def _sentences(text: str) -> list[str]:
    return [sentence for part in _SENTENCE_END.split(text[:MOST_READ]) if (sentence := part.strip())]
