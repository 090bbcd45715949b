"""The composer: answers without a language model, and says so.

It is pure and deterministic: the same text, mode (how to answer, such as RESPOND or CLARIFY), signals (what the router
read from the text) and memory give the same answer. It quotes what is remembered and claims no more than that. Its
sentences are data (``answers.json``). They are part of the recorded decisions: a changed sentence is changed behaviour,
so raise the actor's ``behaviour`` (the version of its decisions) with it.
"""

import re
from importlib.resources import files
from string import Template
from typing import Literal

import msgspec

from actors.responder.composing.quoting import quote
from schemas.vocabulary.router import Mode, ModeSelected, Signals

_MOST_FACTS = 8
"""Most facts that an answer reports as told, or as taken back."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
"""A word of letters and digits, which may have apostrophes or hyphens within it."""


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sentences by name, as ``string.Template``s, and the words of thanks and farewell, case-folded."""

    answers: dict[str, str]
    thanks: frozenset[str]
    farewells: frozenset[str]


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer can use.

    Attributes:
        earlier: Quotes from the session's last turns, oldest first.
        memories: Quotes of memories relevant to the text to be answered, the strongest first.
        told: Quotes of the facts that the text to be answered itself states.
        gone: Quotes of the facts that it takes back or replaces.
        lack: Why no model answers: none is attached, or the one that was asked gave no answer.
        guarded: Whether the breaker's stance, which says how careful answers have to be, is ``guarded``: then nothing
            is quoted, and the answer says so.
    """

    earlier: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    lack: Literal["unattached", "silent"] = "unattached"
    guarded: bool = False


ANSWERS = msgspec.json.decode(files(__package__).joinpath("answers.json").read_bytes(), type=Answers)
"""The composer's sentences and words."""

_TEMPLATES = {name: Template(text) for name, text in ANSWERS.answers.items()}


def text_of(name: str, **values: str) -> str:
    """Return the sentence ``name`` with its values filled in; raises KeyError where one is missing."""
    return _TEMPLATES[name].substitute(values)


def compose(mode: Mode, text: str, selected: ModeSelected, recall: Recall, quote_limit: int) -> str | None:
    """Write the answer to ``text`` in ``mode``: empty for IGNORE; None for ACT, which has no answer of its own."""
    if mode == "IGNORE":
        return ""
    quoted = quote(text, quote_limit)
    if recall.guarded:
        recall = Recall(lack=recall.lack)
        answer = compose(mode, text, selected, recall, quote_limit)
        return f"{answer} {text_of('guarded')}" if answer and mode != "ACKNOWLEDGE" else answer
    facts = _facts_sentences(recall)
    if mode == "RESPOND":
        return " ".join([*facts, _respond(quoted, selected, recall)])
    if mode == "CLARIFY":
        return " ".join([*facts, _clarify(quoted, selected.signals, recall)])
    if mode == "ACKNOWLEDGE":
        return " ".join([text_of(f"acknowledge.{_acknowledgement(quoted, selected.signals, recall)}"), *facts])
    return None


def _facts_sentences(recall: Recall) -> list[str]:
    """Return a sentence that repeats the facts which the text states or takes back; none if there are no such facts."""
    if not recall.told and not recall.gone:
        return []
    kind = "gone" if not recall.told else "instead" if recall.gone else "told"
    return [text_of(f"heard.{kind}", told=_first_listed(recall.told), gone=_first_listed(recall.gone))]


def _respond(quoted: str, selected: ModeSelected, recall: Recall) -> str:
    signals = selected.signals
    asks = signals.has_question_mark or signals.interrogative_words
    if not asks and (recall.told or recall.gone):
        kind = "heard"
    else:
        kind = "remembered" if recall.memories else "question" if asks else "statement"
    answer = text_of(
        f"respond.{kind}",
        quote=quoted,
        confidence=f"{selected.router_confidence:.2f}",
        lack=text_of(f"lack.{recall.lack}"),
        memories=_listed(recall.memories),
    )
    if not signals.implicit_reference or kind == "heard":
        return answer
    if recall.earlier:
        return f"{answer} {text_of('respond.earlier', earlier=_listed(recall.earlier))}"
    return answer if recall.memories else f"{answer} {text_of('respond.no_earlier')}"


def _clarify(quoted: str, signals: Signals, recall: Recall) -> str:
    # Only a model can tell what exactly is missing, so no question is invented around a word of the text.
    if signals.implicit_reference and recall.earlier:
        question = text_of("clarify.earlier", earlier=_listed(recall.earlier), quote=quoted)
    else:
        question = text_of("clarify.missing", quote=quoted)
    remembered = [text_of("clarify.remembered", memories=_listed(recall.memories))] if recall.memories else []
    return " ".join([*remembered, question, text_of(f"clarify.closing.{recall.lack}")])


def _acknowledgement(quoted: str, signals: Signals, recall: Recall) -> str:
    words = {word.casefold() for word in _WORD.findall(quoted)}
    if signals.explicit_feedback == "negative":
        return "sorry"
    if not words.isdisjoint(ANSWERS.thanks):
        return "thanks"
    if signals.explicit_feedback == "positive":
        return "pleased"
    if not words.isdisjoint(ANSWERS.farewells):
        return "farewell"
    if signals.greeting_pattern:
        return "greeting_again" if recall.earlier else "greeting"
    return "noted"


def _first_listed(quotes: tuple[str, ...]) -> str:
    """Return the first quotes, and how many more there are: a text can take back all facts at once."""
    more = len(quotes) - _MOST_FACTS
    return f"{_listed(quotes[:_MOST_FACTS])} and {more} more" if more > 0 else _listed(quotes)


def _listed(quotes: tuple[str, ...]) -> str:
    return ", ".join(f"“{each}”" for each in quotes)
