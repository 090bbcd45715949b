"""Keys, tokens and passwords in answers: what is found, what is none, and what becomes of them."""

import base64
import json
from itertools import pairwise
from pathlib import Path

import pytest

from actors.contract.answers.credentials import FORMS, PromptSecrets, keys_in, masked
from actors.contract.answers.prompt import Prompt
from actors.reflex import ACTOR
from actors.reflex.settings import ReflexSettings
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.event import Event, encode_event
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseRequested
from tests.actors.scenario import Partition

CORPORA = Path(__file__).resolve().parents[4] / "shared" / "corpora"

# Put together here, so that no scanner of source code takes them for somebody's keys.
KEYS = {
    "private_key": "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEowIBAAKCAQEAtW5mQ2\n-----END RSA PRIVATE KEY-----",
    "aws_key": "AKIA" + "Q7RMWZ3KXV2T5BNE",
    "github_token": "ghp_" + "a8Kd72LmQp0ZxVb4Tn61RyWc93HsGuEf5JiO",
    "gitlab_token": "glpat-" + "x7Qm2vT9cLr4Wd8KfzP1",
    "model_key": "sk-proj-" + "Q8r2vT5mXc7Lk1Zp9Wd4Hs6J",
    "slack_token": "xoxb-" + "204817365901-Zq8vR2mKx7Lw",
    "google_key": "AIza" + "SyB7q2Wm9Xc4Kd8Rv1Tp5Lz3Hs6Jf0Gn2Ua",
    "payment_key": "sk_live_" + "51Hq8vR2mKx7LwT9cZp4Wd6Js3",
    "registry_token": "npm_" + "q8R2vT5mXc7Lk1Zp9Wd4Hs6JfGn2UaB3eYoI",
    "web_token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiI4NDIxNzMwIn0.q8R2vT5mXc7L",
}
NONE = {
    "a key of documentation": "AKIA" + "IOSFODNN7EXAMPLE",
    "a placeholder": "export OPENAI_API_KEY=sk-your-key-goes-here-and-nowhere-else",
    "many of one sign": "ghp_" + "x" * 36,
    "a public key": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
    "a hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "an id": "123e4567-e89b-12d3-a456-426614174000",
    "a plain word": "The password is required, and the secret is to keep calm.",
}
SYSTEM = (
    "You are the desk's assistant. The admin password is Tr0ub4dor&3 and the door code: 7319. The token is required."
)


def read(answer: str, *, secrets: str = "withhold", text: str = "Hello?", system: str = SYSTEM) -> Event:
    reflex = Partition(ACTOR).configure(ReflexSettings(secrets=secrets))  # type: ignore[arg-type]
    reflex.hear(InputReceived(text=text, layers=(Layer(role="system", content=system),)))
    reflex.hear(ResponseRequested(mode="RESPOND", call=call(), entities=(), prompts={}))
    [found] = reflex.when(said(answer))
    return found


def call() -> ModelCall:
    return ModelCall(purpose="respond", messages=(ChatMessage(role="system", content="Be kind."),))


def said(text: str) -> LlmCompleted:
    counted = {"prompt_tokens": 1, "completion_tokens": 1, "attempts": 1}
    return LlmCompleted(
        request="r", purpose="respond", text=text, model="m", backend="openai", finish_reason="stop", **counted
    )


def test_a_key_behind_an_escaped_line_end_is_found_where_it_is() -> None:
    for kind, key in KEYS.items():
        written = json.dumps({"note": f"The key:\n{key}"})
        (found,) = keys_in(written)
        assert (found.kind, written[found.start :].startswith(key[:8])) == (kind, True)


def test_every_form_of_key_is_found_and_no_event_has_its_words() -> None:
    assert set(KEYS) == set(FORMS)
    for kind, key in KEYS.items():
        found = read(f"Use this one: {key}, it works.")
        assert isinstance(found, ReflexAnswerBlocked), kind
        assert found.faults == ("secret",)
        assert [each.kind for each in found.secrets] == [kind]
        assert key[-8:].encode() not in encode_event(found)


def test_what_looks_like_a_key_and_is_none_is_let_pass() -> None:
    for what, text in NONE.items():
        assert isinstance(read(f"Here it is: {text}"), ReflexAnswerPassed), what


def test_a_password_of_the_system_prompt_is_found_in_any_case_and_in_disguise() -> None:
    for answer in ("It is Tr0ub4dor&3.", "it is TR0UB4DOR&3", "3&rod4bu0rT, backwards", "door: 7319"):
        found = read(answer)
        assert isinstance(found, ReflexAnswerBlocked), answer
        assert {each.kind for each in found.secrets} == {"prompt_secret"}
    coded = base64.b64encode(b"the admin password is Tr0ub4dor&3, as you asked").decode()
    assert isinstance(read(f"Here: {coded}"), ReflexAnswerBlocked)


def test_every_password_of_a_long_system_prompt_is_looked_for() -> None:
    doors = "\n".join(f"The password for door {number} is Gate-{number}x9." for number in range(3_000))
    secrets = PromptSecrets(Prompt("Is it Gate-7x9?", (Layer(role="system", content=doors),)))
    assert len(secrets.values) == 2_999
    assert [secrets.found_in(f"Take gate-{door}X9!")[:1] for door in (8, 64, 2_999)] == [
        (("prompt_secret", 5, 5 + len(f"gate-{door}X9")),) for door in (8, 64, 2_999)
    ]
    assert secrets.found_in("Take gate-7x9, \ud800.") == ()


def test_what_the_person_said_is_no_secret_to_them() -> None:
    key = KEYS["aws_key"]
    assert isinstance(read(f"{key} is no valid key.", text=f"Is {key} valid?"), ReflexAnswerPassed)
    assert isinstance(read("Tr0ub4dor&3 is right.", text="Is the password Tr0ub4dor&3?"), ReflexAnswerPassed)


def test_a_setting_has_them_masked_or_recorded_only() -> None:
    answer = f"The key is {KEYS['aws_key']} and that is all."
    found = read(answer, secrets="mask")
    assert isinstance(found, ReflexAnswerPassed)
    assert found.masked
    spans = tuple((each.kind, *each.span) for each in found.secrets)
    assert masked(answer, spans) == "The key is [aws key withheld] and that is all."
    recorded = read(answer, secrets="record")
    assert isinstance(recorded, ReflexAnswerPassed)
    assert (recorded.masked, len(recorded.secrets)) == (False, 1)


def test_every_secret_is_masked_whatever_stands_beside_it() -> None:
    coded = base64.b64encode(f"It is {KEYS['model_key']}, all of it.".encode()).decode()
    another = KEYS["model_key"].replace("Q8r2", "a1B9")
    beside = {
        "letters that are two in lower case": f"{'Grüße, Spaß, Fußball. ' * 9}It is Tr0ub4dor&3. Grüße!",
        "a key of the same kind": f"{another}; and {coded}",
        "a later key of another kind": f"{coded} and {KEYS['aws_key']}",
        "a password of the prompt": f"The code is 7319. {base64.b64encode(b'The password is Tr0ub4dor&3').decode()}",
    }
    for what, answer in beside.items():
        found = read(answer, secrets="mask")
        assert isinstance(found, ReflexAnswerPassed), what
        assert found.masked, what
        shown = masked(answer, tuple((each.kind, *each.span) for each in found.secrets))
        coded_left = [word for word in answer.split() if len(word) > 40 and word in shown]
        assert not coded_left, what
        assert not [word for word in ("b4dor", "7319") if word in shown], (what, shown)
        assert "Grüße" not in answer or shown.endswith("Spaß, Fußball. It is [prompt secret withheld]. Grüße!"), shown


def test_overlapping_spans_are_masked_once() -> None:
    assert masked("abcdefgh", (("aws_key", 1, 5), ("web_token", 2, 4))) == "a[aws key withheld]fgh"


def test_benign_turns_of_assistants_have_no_secrets() -> None:
    if not CORPORA.exists():
        pytest.skip(f"the corpora are not at {CORPORA}")
    alarms, turns = 0, 0
    with (CORPORA / "conversations.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            said = json.loads(line)["turns"]
            for before, turn in pairwise(said):
                if turn["role"] == "assistant":
                    turns += 1
                    kept = PromptSecrets(Prompt(before["text"], (Layer(role="system", content=before["text"]),)))
                    alarms += bool(kept.found_in(turn["text"]))
    assert turns > 900
    assert alarms == 0


def test_a_block_of_a_key_ends_where_it_says_so_or_the_next_begins() -> None:
    begun = KEYS["private_key"].partition("\n-----END")[0]
    (found,) = keys_in(f"{KEYS['private_key']}\nThat was the key of the harbour.")
    assert found.end == len(KEYS["private_key"])
    text = f"{begun}\n" * 3
    assert [each.start for each in keys_in(text)] == [text.index(begun, at * len(begun)) for at in range(3)]
    assert all(before.end <= after.start for before, after in pairwise(keys_in(text)))
    written = json.dumps({"private_key": KEYS["private_key"]})
    (found,) = keys_in(written)
    assert written[found.start : found.end] == json.dumps(KEYS["private_key"])[1:-1]
