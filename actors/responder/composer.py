"""The composer: answers without a language model, and says so.

Pure and deterministic: the same words, mode, signals and memory give the same answer. The texts are data
(``answers.json``). They are part of the recorded decisions: a changed text is a changed behaviour, so raise the
actor's ``behaviour`` with it.
"""

import re
from importlib.resources import files
from string import Template

import msgspec

from schemas.vocabulary.router import Mode, ModeSelected, Signals

MEMORY_TURNS = 4
"""Answered turns of a session that are remembered."""

_TERM_LIMIT = 60
_SHORTEST_TERM = 3
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts by name, as ``string.Template``s, and the words that the composer knows (case-folded)."""

    answers: dict[str, str]
    thanks: frozenset[str]
    farewells: frozenset[str]
    empty_words: frozenset[str]


ANSWERS = msgspec.json.decode(files(__package__).joinpath("answers.json").read_bytes(), type=Answers)
_TEMPLATES = {name: Template(text) for name, text in ANSWERS.answers.items()}


def text_of(name: str, **values: str) -> str:
    """Return the answer ``name`` with its values filled in; raises KeyError where one is missing."""
    return _TEMPLATES[name].substitute(values)


def quote(text: str, limit: int) -> str:
    """Return the beginning of a text on one line, in at most ``limit`` characters, without invisible ones.

    Looks at no more than four times the limit, however long the text is.
    """
    stripped = text.strip()
    window = stripped[: 4 * limit]
    line = " ".join(window.split())
    if not line.isprintable():
        # Format characters (bidirectional marks, zero widths) could make a quote look like something not said.
        line = " ".join("".join(each if each.isprintable() else " " for each in line).split())
    if len(line) <= limit and len(window) == len(stripped):
        return line
    return line[: limit - 1].rstrip() + "…"


def compose(mode: Mode, text: str, selected: ModeSelected, earlier: tuple[str, ...], quote_limit: int) -> str | None:
    """Write the answer to ``text`` in ``mode``; None for a mode that is not one to answer in.

    ``earlier`` are quotes of the session's last turns, oldest first; empty when nothing is remembered.
    """
    if mode == "IGNORE":
        return ""
    quoted = quote(text, quote_limit)
    if mode == "RESPOND":
        return _respond(quoted, selected, earlier)
    if mode == "CLARIFY":
        return _clarify(quoted, selected.signals, earlier)
    if mode == "ACKNOWLEDGE":
        return text_of(f"acknowledge.{_acknowledgement(quoted, selected.signals, earlier)}")
    return None


def _respond(quoted: str, selected: ModeSelected, earlier: tuple[str, ...]) -> str:
    signals = selected.signals
    asks = signals.has_question_mark or signals.interrogative_words
    kind = "question" if asks else "statement"
    answer = text_of(f"respond.{kind}", quote=quoted, confidence=f"{selected.router_confidence:.2f}")
    if not signals.implicit_reference:
        return answer
    memory = text_of("respond.earlier", earlier=_listed(earlier)) if earlier else text_of("respond.no_earlier")
    return f"{answer} {memory}"


def _clarify(quoted: str, signals: Signals, earlier: tuple[str, ...]) -> str:
    term = _term_of(quoted)
    if signals.implicit_reference and earlier:
        question = text_of("clarify.earlier", earlier=_listed(earlier), quote=quoted)
    elif term:
        question = text_of("clarify.term", quote=quoted, term=quote(term, _TERM_LIMIT))
    else:
        question = text_of("clarify.vague", quote=quoted)
    return f"{question} {text_of('clarify.closing')}"


def _acknowledgement(quoted: str, signals: Signals, earlier: tuple[str, ...]) -> str:
    words = _words_of(quoted)
    if signals.explicit_feedback == "negative":
        return "sorry"
    if not words.isdisjoint(ANSWERS.thanks):
        return "thanks"
    if signals.explicit_feedback == "positive":
        return "pleased"
    if not words.isdisjoint(ANSWERS.farewells):
        return "farewell"
    if signals.greeting_pattern:
        return "greeting_again" if earlier else "greeting"
    return "noted"


def _listed(earlier: tuple[str, ...]) -> str:
    return ", ".join(f"“{each}”" for each in earlier)


def _words_of(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _term_of(text: str) -> str:
    """Return the longest word that says something, the first of equals; empty when there is none."""
    words = [word for word in _WORD.findall(text) if len(word) >= _SHORTEST_TERM or not word.isascii()]
    telling = [word for word in words if word.casefold() not in ANSWERS.empty_words]
    return max(telling, key=len, default="")
