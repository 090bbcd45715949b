"""Why an endpoint refused: its reason is found wherever it stands, and kept without secrets."""

import json
from urllib.parse import quote

import msgspec

from actors.llm.wire.refusals import HIDDEN, reason_of, without_secrets
from tests.actors.llm import scripted
from tests.actors.llm.asking import KEY, QUICK, Asking, over
from tests.actors.llm.scripted import Reply, fails
from tests.each import each


@each(
    ("body", "said"),
    [
        (b'{"error": {"message": "quota exceeded", "type": "quota"}}', "quota exceeded; type quota"),
        (b'{"error": "quota exceeded"}', "quota exceeded"),
        (b'{"object": "error", "message": "quota exceeded", "code": 403}', "quota exceeded"),
        (b'{"detail": [{"loc": ["body", "n"], "msg": "extra", "input": "my words"}]}', "body.n: extra"),
        (b'{"message": "quota exceeded", "request_id": "1"}', "quota exceeded"),
        (b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", "502 Bad Gateway"),
        (b"<html><body><p>No such  host</p><script>x()</script></body></html>", "No such host"),
        (b"quota\nexceeded", "quota exceeded"),
        (b'{"error": {"message": "Provider returned error", "metadata": {"raw": "rate limited"}}}',
         "Provider returned error; rate limited"),
        (b'{"error_code": 17, "error_msg": "daily limit reached"}', "daily limit reached"),
        (b'{"base_resp": {"status_code": 1004, "status_msg": "login fail"}}', "login fail"),
        (b'{"choices": [{"message": {"content": "my words"}, "error": {"message": "it broke"}}]}', "it broke"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
    ],
)  # fmt: skip
def test_the_reason_of_a_refusal_is_found_wherever_it_stands(body: bytes, said: str) -> None:
    assert reason_of(body) == said


@each("status", [400, 402, 403, 404, 422, 500])
def test_the_reason_of_a_refusal_is_recorded_without_the_key(status: int) -> None:
    refusal = fails(status, json.dumps({"error": {"message": f"Account of key {KEY} is out of credit"}}).encode())

    @over(refusal, settings=msgspec.structs.replace(QUICK, attempts=1))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert failed.said == f"Account of key {HIDDEN} is out of credit"
        assert failed.error == f"HTTP {status}"


@each(
    "said",
    [
        "Incorrect API key provided: sk-proj-abcd1234efgh5678.",
        "Incorrect API key provided: sk-ab***************9xyz. You can find it on our site.",
        "Authorization: Bearer abcdef123456",
        "bad token 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "see https://user:hunter22@llm.example/v1?api_key=abcdef123456",
        "x-api-key: abcdef123456 was revoked",
        "the password is hunter2222",
        "key AIzaSyA1234567890abcdefghijk",
        "JWT eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_123",
    ],
)
def test_nothing_that_looks_like_a_secret_is_kept_of_a_reason(said: str) -> None:
    told = without_secrets(said)
    assert HIDDEN in told or "hunter" in said
    secrets = ("abcd1234", "9xyz", "abcdef123456", "9f86d08188", "hunter22", "AIzaSyA123", "eyJzdWIi", "hunter2222")
    assert not any(secret in told for secret in secrets)


@each("key", ["hunter2!", "AbC/dEf+gH1=="])
def test_a_key_is_hidden_however_an_endpoint_writes_it(key: str) -> None:
    for written in (key, key.upper(), quote(key, safe="")):
        assert written not in without_secrets(f"GET /v1/models?k={written} and [{written}]", key)


def test_a_key_that_is_shown_in_part_is_hidden_too() -> None:
    assert KEY[-6:] not in without_secrets(f"key {KEY[:8]}...{KEY[-6:]} is wrong", KEY)
    assert KEY[:8] not in without_secrets(f"key {KEY[:8]}... is wrong", KEY)


@each(
    "said",
    ["max_tokens is too large: 512", "The token count exceeds the limit of 4096", "model gpt-4o-mini-2024 not found"],
)
def test_plain_words_are_kept_as_they_are(said: str) -> None:
    assert without_secrets(said) == said


def test_a_long_reason_is_cut_and_stands_on_one_line() -> None:
    told = without_secrets("no\n\x1b[31m " * 1000)
    assert len(told) == 300
    assert told.isprintable()


def test_a_page_in_an_answers_place_says_what_it_is() -> None:
    page = Reply((b"<!doctype html><title>Sign in to the proxy</title>",), headers={"Content-Type": "text/html"})

    @over(page)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert (failed.reason, failed.error, failed.said) == ("answer_invalid", "HtmlPage", "Sign in to the proxy")
        assert len(endpoint.asked) == 1


@each(
    ("status", "error"),
    [
        (400, {"code": "content_filter", "message": "The prompt triggered the content management policy."}),
        (400, {"code": "content_policy_violation", "message": "Your request was rejected."}),
        (500, {"message": "filtered", "innererror": {}, "type": "ResponsibleAIPolicyViolation"}),
    ],
)
def test_a_prompt_that_a_filter_refuses_is_told_to_be_filtered_and_not_sent_again(status: int, error: object) -> None:
    @over(fails(status, json.dumps({"error": error}).encode()))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "answer_filtered"
        assert len(endpoint.asked) == 1
