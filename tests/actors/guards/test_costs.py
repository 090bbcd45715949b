"""The work for a text grows with its length, and not with the square of it, whatever the text consists of."""

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from actors.contract.answers.credentials import PromptSecrets
from actors.contract.answers.leaks import leaked
from actors.contract.answers.prompt import Prompt, prompt_of
from actors.contract.answers.window import AnswerWindow
from actors.contract.privacy.masking import Masks
from actors.contract.privacy.recognising import found_in
from actors.contract.text.allowances import MOST_ALLOWANCES, Allowances
from actors.contract.text.decoding import decode_nested
from actors.contract.text.rewriting import REWRITE
from actors.gateway.http.openai.passthrough.guarding import GuardedStream, Watch
from actors.gateway.http.openai.relayed_answer import read_whole_answer
from actors.intuition.text_words import read as read_words
from actors.llm.answer_text import AnswerInvalid, read_answer_text
from actors.llm.wire.refusals import without_secrets
from actors.webhook.response_verdicts import refusal
from schemas.effectors.model_calls import ChatMessage, ModelCall, without_code_fence
from schemas.intake.sse import Events
from schemas.vocabulary.allowances import AllowanceRecorded
from schemas.vocabulary.gateway import InputReceived, Layer
from tests.each import each

MOST_S = 1.5
"""Each takes some .1 s of processor time. With work that grows with the square, they took 3 s to several minutes."""


class Work(NamedTuple):
    """Some work on texts of the size that the gateway accepts: what it is, and what does it."""

    name: str
    run: Callable[[], object]


def _prompt(system: str, text: str = "Hello there.") -> Prompt:
    return Prompt(text, (Layer(role="system", content=system),))


def _call(text: str) -> ModelCall:
    return ModelCall(purpose="respond", messages=(ChatMessage(role="user", content=text),))


def _fenced(text: str) -> None:
    with pytest.raises(AnswerInvalid, match="NotJson"):
        read_answer_text(text, {"type": "object"}, 100_000)


def _windows(system: str, texts: int) -> None:
    first = AnswerWindow(_prompt(system))
    for _ in range(texts):
        window = AnswerWindow(_prompt(system), beside=first)
        window.take("Hello.")
        window.end()
        assert window.released == len("Hello.")


def _choices(system: str, choices: int) -> None:
    stream = GuardedStream(_prompt(system), Watch())
    for index in range(choices):
        stream.take(b'data: {"choices":[{"index":%d,"delta":{"content":"Hello"}}]}\n\n' % index)
    stream.end()
    assert stream.found == ()


def _event_in_pieces(size: int) -> None:
    stream = GuardedStream(Prompt("", ()), Watch())
    event = b'data: {"text": "' + b"x " * (size // 2) + b'"}\r\n\r\ndata: [DONE]\n\n'
    out = b"".join(stream.take(event[at : at + 500]) for at in range(0, len(event), 500))
    stream.end()
    assert out + stream.rest() == event


def _masked(values: int) -> None:
    prompt = " ".join(f"{letters}@b.co" for letters in _letters(values))
    masks = Masks(found_in, iter((prompt,)))
    masked = masks.mask(prompt)
    assert "@" not in masked
    assert masks.restore(masked) == masks.restore_json(masked.encode()).decode() == prompt


def _letters(count: int) -> list[str]:
    return ["".join(each) for each in itertools.islice(itertools.product("abcdefghij", repeat=6), count)]


def _line_in_pieces(size: int) -> None:
    line, events = b"data: " + b"x" * size, Events()
    found = [event for at in range(0, len(line), 500) for event in events.feed(line[at : at + 500])]
    assert [len(event.data) for event in (*found, *events.end())] == [size]


_WORDS = " ".join(f"word{number * 7919 % 60_000}" for number in range(30_000))
_PINS = "".join(f"pin: a{number:05d}b\n" for number in range(20_000))


_MANY_CHOICES = b'{"choices":[%b]}' % b",".join([b'{"message":{"content":"x"}}'] * 300_000)


def _allowed(count: int, size: int) -> None:
    """Judge a text of a megabyte under many long phrases, each of a text of its own."""
    held = Allowances()
    for number in range(count):
        words = " ".join(_letters(size // 7 + number)[number:])
        held = held.after(
            "ann", AllowanceRecorded(allowance=f"a-{number}", phrase=f"{words} {number}", by="b", why="w")
        )
    text = f"{_WORDS} " * 4
    assert held.judged("ann", InputReceived(text=text)) == (InputReceived(text=text), ())


WORKS = (
    Work("quoted values above a blank stretch", lambda: decode_nested('"a"\n' * 2_100 + "\n" * 300_000)),
    Work("white space without line ends", lambda: REWRITE["spaced"]("\u2028" * 49_152)),
    Work("an answer of line ends", lambda: _fenced("```json\n" + "\n " * 20_000 + "{")),
    Work("a blank stretch in an answer", lambda: without_code_fence(f"a{' ' * 100_000}b")),
    Work("beginnings of blocks", lambda: prompt_of(_call("[data c: aa_" * 20_000))),
    Work("blocks without an end", lambda: prompt_of(_call("".join(f"[data {n:x}: a]\n" for n in range(20_000))))),
    Work("many passwords in a prompt", lambda: PromptSecrets(_prompt(_PINS, "x" * 240_000))),
    Work("a long prompt, compared with many texts", lambda: leaked(_prompt(_WORDS), ("Hello.",) * 384)),
    Work("a long prompt, compared with many windows", lambda: _windows(_WORDS, 128)),
    Work("a long prompt, and many choices", lambda: _choices(_WORDS, 128)),
    Work("a prompt of addresses to mask", lambda: _masked(20_000)),
    Work("an event in thousands of pieces", lambda: _event_in_pieces(1_500_000)),
    Work("a line of a stream in thousands of pieces", lambda: _line_in_pieces(4_000_000)),
    Work("many long phrases that are allowed", lambda: _allowed(MOST_ALLOWANCES, 15_000)),
    Work("groups of five before a longer word", lambda: decode_nested("h3ll0 " * 25_000 + "longer")),
    Work("a row of dots before a letter", lambda: read_words("." * 60_000 + "y")),
    Work("an answer with many choices", lambda: read_whole_answer(_MANY_CHOICES)),
    Work("a receiver's error that is one long word", lambda: refusal(b"error " + b"X" * 60_000, "slack")),
    Work("a refusal that consists of signs", lambda: without_secrets("+" * 20_000)),
)


@each("work", WORKS, named=[work.name for work in WORKS])
def test_work_does_not_grow_with_the_square_of_the_length(work: Work) -> None:
    began = time.process_time()
    work.run()
    assert time.process_time() - began < MOST_S
