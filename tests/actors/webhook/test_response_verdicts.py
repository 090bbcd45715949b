"""Receivers that answer with a good status and an error in it did not take the alert."""

import gzip
import json
from typing import Any

import msgspec

from actors.webhook.http_call import secrets_of
from actors.webhook.receivers import Address
from actors.webhook.response_verdicts import MOST_REASON, refusal
from actors.webhook.settings import Receiver, Style
from schemas.vocabulary.webhook import WebhookDelivered, WebhookFailed
from tests.actors.llm.scripted import JSON, Endpoint, Reply
from tests.actors.webhook.alerts import QUICK, SECRET, TAKES, receivers
from tests.actors.webhook.test_alert_delivery import delivered_by, over
from tests.each import each


@each(
    ("body", "reason", "passing"),
    [
        (b"invalid_payload", "invalid_payload", False),
        (b"no_service", "no_service", False),
        (b"channel_is_archived", "channel_is_archived", False),
        (b"rollup_error", "rollup_error", True),
        (b'"invalid_token"', "invalid_token", False),
        (b"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429", None, True),
        (b'{"ok": false, "error": "invalid_auth"}', "invalid_auth", False),
        (b'{"ok": false, "error": "ratelimited"}', "ratelimited", True),
        (b'{"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 5"}', None, True),
        (b'{"ok": false}', "an error without a reason", False),
        (b'{"status": "error"}', "an error without a reason", False),
        (b'{"status": "error", "message": "temporarily unavailable"}', "temporarily unavailable", True),
        (b'{"status": 503, "message": "later"}', "later; status 503", True),
        (b'{"status": 429}', "status 429", True),
        (b'{"title": "Bad", "status": 404}', "status 404", False),
        (b'{"status": "ERROR: no channel"}', "ERROR: no channel", False),
        (b'{"state": "failed", "message": "no such hook"}', "no such hook", False),
        (b'{"type": "error", "message": "no such hook"}', "no such hook", False),
        (b'{"code": "INVALID", "message": "no such hook"}', "no such hook; INVALID", False),
        (b"false", "an error without a reason", False),
        (b"rate limited", "rate limited", True),
        (b"Forbidden", "Forbidden", False),
        (b"Webhook not found", "Webhook not found", False),
        (b'{"errcode": 130101, "errmsg": "send too fast, exceed 20 times"}', None, True),
        (b'{"errcode": 45009, "errmsg": "api freq out of limit"}', None, True),
        (b'{"code": 11232, "msg": "frequency limited psm"}', None, True),
        (b'{"code": 9499, "msg": "too many request"}', None, True),
        (b"Service unavailable, try again later", "Service unavailable, try again later", True),
        (b'{"status": 0, "errors": ["user key is invalid"]}', "user key is invalid", False),
        (b'{"errors": [{"code": 503, "message": "internal server error"}]}', None, True),
        (b'{"errors": {"name": "is missing"}}', "an error without a reason", False),
        (b'{"error": {"code": 400, "message": "bad body"}}', "bad body; code 400", False),
        (b'{"success": false, "error": "no such hook"}', "no such hook", False),
        (b'{"errcode": 93000, "errmsg": "invalid webhook url"}', "invalid webhook url; errcode 93000", False),
        (b'{"Success": false, "Message": "no such hook"}', "no such hook", False),
        (b'{"success": "false", "error": "no such hook"}', "no such hook", False),
        (b'{"status": "503", "message": "later"}', "later; status 503", True),
        (b'{"StatusCode": 19001, "StatusMessage": "param invalid"}', "param invalid; statuscode 19001", False),
        (b'[{"ok": true}, {"ok": false, "error": "no such hook"}]', "no such hook", False),
        (b'{"result": "failed", "reason": "no such hook"}', "no such hook", False),
        (b'{"isError": true, "message": "no such hook"}', "no such hook", False),
        (b'\xef\xbb\xbf{"ok": false, "error": "no such hook"}', "no such hook", False),
        (b'{"code": 19001, "msg": "param invalid"}', "param invalid; code 19001", False),
        (b'{"result": {"ok": false, "error": "no such hook"}}', "no such hook", False),
        (b'{"status": "ok", "response": {"status": {"code": 503, "message": "later"}}}', "later; code 503", True),
        (b'{"data": {"notify": {"userErrors": [{"message": "no such hook"}]}}}', "no such hook", False),
        (b'{"success": 0, "failure": 1, "results": [{"error": "Unavailable"}]}', "Unavailable", True),
        (b'{"errors": true, "items": [{"index": {"error": {"reason": "no such hook"}}}]}', "no such hook", False),
        (b'{"results": [{"ok": true}, {"ok": false, "reason": "no such hook"}]}', "no such hook", False),
        (b'{"statusCode": 200, "body": "{\\"ok\\": false, \\"error\\": \\"no such hook\\"}"}', "no such hook", False),
        (b'{"ok": true}\n{"ok": false, "error": "no such hook"}\n', "no such hook", False),
        (b'{"accepted": 0, "rejected": 1, "reason": "no such hook"}', "no such hook", False),
        (b'{"status": "KO", "message": "no such hook"}', "no such hook", False),
        (b'{"status": "invalid event", "message": "no such hook"}', "no such hook; invalid event", False),
        (b'{"ack": false, "reason": "no such hook"}', "no such hook", False),
        (b'{"fault": {"faultstring": "no such hook"}}', "no such hook", False),
        (b'{"message": "error", "code": 1}', "error; code 1", False),
        (b'{"code": -1, "msg": "no such hook"}', "no such hook; code -1", False),
        (b'{"ret": -3, "msg": "no such hook"}', "no such hook", False),
        (b'{"error_code": "no_such_hook"}', "no_such_hook", False),
        (b'{"valid": false, "reason": "no such hook"}', "no such hook", False),
        (b'{"http_code": 400, "response_msg": "no such hook"}', "an error without a reason", False),
        (b'{"exc_type": "ValidationError", "exc": "no such hook"}', "no such hook", False),
        (b'{"messages": [{"status": "29", "error-text": "no such hook"}]}', "no such hook", False),
        (b'{"ocs": {"meta": {"status": "failure", "statuscode": 404, "message": "no such hook"}}}', None, False),
        (b'{"offsets": [{"partition": null, "error_code": 50003, "error": "no such hook"}]}', None, False),
        (b'{"FailedPutCount": 1, "RequestResponses": [{"ErrorCode": "ServiceUnavailable"}]}', None, True),
        (b'{"FailedRecordCount": 1, "Records": [{"ErrorMessage": "no such hook"}]}', "no such hook", False),
        (b'{"FailedEntryCount": 1, "Entries": []}', "an error without a reason", False),
        (b'{"_shards": {"total": 2, "successful": 0, "failed": 2}}', "an error without a reason", False),
        (b'{"messageStatus": "FAILED", "reason": "no such hook"}', "no such hook", False),
        (b'{"return_code": "FAIL", "msg": "no such hook"}', "no such hook", False),
        (b'{"resultCode": "ERROR", "message": "no such hook"}', "no such hook", False),
        (b'{"response": "ERROR", "reason": "no such hook"}', "no such hook", False),
        (b'{"responseCode": "503", "message": "later"}', "later; responsecode 503", True),
        (b'{"status": "NOT_OK", "reason": "no such hook"}', "no such hook", False),
        (b'{"result": "not found", "reason": "no such hook"}', "no such hook; not found", False),
        (b'{"status": "undelivered", "reason": "no such hook"}', "no such hook", False),
        (b'{"is_ok": false, "reason": "no such hook"}', "no such hook", False),
        (b'{"Success": "N", "reason": "no such hook"}', "no such hook", False),
        (b'{"error_no": 3, "msg": "no such hook"}', "no such hook; errorno 3", False),
        (b'{"errorResponse": {"message": "no such hook"}}', "no such hook", False),
        (b'{"RequestSuccess": false, "reason": "no such hook"}', "no such hook", False),
        (b'{"header": {"isSuccessful": false, "resultMessage": "no hook"}}', "an error without a reason", False),
        (b'{"header": {"resultCode": -1}}', "an error without a reason", False),
        (b'{"responseStatus": {"errorCode": "NoHook"}}', "NoHook", False),
        (b'{"deliveryStatus": "FAILED", "reason": "no such hook"}', "no such hook", False),
        (b'{"delivery": "failed", "reason": "no such hook"}', "no such hook", False),
        (b'{"statusText": "Unauthorized", "reason": "no such hook"}', "no such hook", False),
        (b'{"error_description": "no such hook"}', "no such hook", False),
        (b'{"d": {"error": "no such hook"}}', "no such hook", False),
        (b'{"code": 40001, "message": "no such hook"}', "no such hook; code 40001", False),
        (b'{"code": 500, "message": "ok"}', None, True),
        (b'{"status": "rate_limited"}', "rate_limited", True),
        (b'{"status": "timed_out", "detail": "later"}', "later; timed_out", True),
        (b'{"status": "unavailable"}', "unavailable", True),
        (b'{"result": "internal_error"}', "internal_error", True),
        (b'{"code": "PERMISSION_DENIED", "message": "no such hook"}', "no such hook; PERMISSION_DENIED", False),
        (b'{"status": "bad_request"}', "an error without a reason", False),
        (b'{"result": "partial_failure"}', "an error without a reason", False),
        (b'{"success": "error"}', "an error without a reason", False),
        (b'<rsp stat="fail"><err code="1" msg="no hook"/></rsp>', "an XML error", False),
        (b"<Response><Error><Message>no hook</Message></Error></Response>", "an XML error: no hook", False),
        ("<r><error>失败</error></r>".encode(), "an XML error", False),
        (b"<script>location='/login'</script>", "an HTML page", False),
        (b"<!DOCTYPE html>\n<html lang='en'><head><title>Sign in</title></head>", "an HTML page: Sign in", False),
        (b"<!-- a --> <html><body><h1>503 Service Unavailable</h1>", "an HTML page: 503 Service Unavailable", True),
        (b"<html><title>Scheduled maintenance &amp; more</title>", "an HTML page: Scheduled maintenance & more", True),
        (b"<html><body></body></html>", "an HTML page", False),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "an XML error: AccessDenied", False),
        (b"<s:Envelope><s:Body><s:Fault><faultstring>no hook</faultstring>", "an XML error: no hook", False),
    ],
)
def test_an_error_under_a_good_status_is_a_refusal_with_its_reason(
    body: bytes, reason: str | None, passing: bool
) -> None:
    found = refusal(body, "slack")
    assert found is not None
    assert reason in (None, found.reason)
    assert found.temporary is passing


@each("style", ["slack", "alertmanager", "json"])
@each(
    "body",
    [
        b"", b"ok", b"OK", b"1", b"{}", b"[]", b"null", b"\xff\xfe", b"{" * 100_000, b"<h1>Success</h1>",
        b'{"status": "rate limit: 50 left of 60"}', b'<r status="ok"><error>0</error><error/></r>',
        b'{"type": "client_request"}', b"<r><error><code>0</code><message>OK</message></error></r>",
        b"<r><error><![CDATA[]]></error></r>", b"<r><error>n/a</error><error>-</error><error>0.0</error></r>",
        b"<form><id>7</id></form>", b'{"ok": true}', b'{"ok": true, "error": null}',
        b'{"status": "success"}', b'{"status": 1, "request": "x"}',
        b'{"status": 200}', b'{"success": true, "errors": []}', b'{"error": false}', b'{"error": ""}',
        b'{"errcode": 0, "errmsg": "ok"}', b'{"code": 0, "msg": "success"}', b'{"code": 200}', b'{"id": "404"}',
        b'{"error": "none"}', b'{"StatusCode": 0, "StatusMessage": "success"}', b'{"errno": "0"}', b'[{"ok": true}]',
        b'{"result": {"ok": true, "errors": []}, "data": {"failed": 0}}', b'{"accepted": ["ops"], "rejected": []}',
        b'{"success": 1, "failure": 0, "results": [{"message_id": "0:15"}]}', b'{"ok": 1}\n{"ok": 1}', b"1\n2",
        b'{"ok": true, "message": {"alert": {"error": "of what the alert tells"}}}', b'{"result": "no error"}',
        b'{"type": "https://a.example/ok", "state": "sent"}', b'{"code": "SUCCESS"}', b'{"type": "message"}', b"true",
        b"<?xml version='1.0'?><Response><Message>error budget</Message></Response>", b'{"message": "no error"}',
        b'{"code": 0, "data": {"pushid": "4", "error": "SUCCESS", "errno": 0}}', b'{"errorCode": "00000"}',
        b'{"error_code": 200, "topic_name": "ops", "offset": 0}', b'{"error": "N/A"}', b'{"error": "No error"}',
        b'{"messages": [{"status": "0", "message-price": "0.03"}]}', b'{"ErrorCode": "OK"}', b'{"error_code": null}',
        b'{"ocs": {"meta": {"status": "ok", "statuscode": 100}}}', b'{"offsets": [{"offset": 1, "error_code": null}]}',
        b'{"_shards": {"total": 2, "successful": 2, "failed": 0}}', b'{"valid": true}', b'{"FailedPutCount": 0}',
        b'{"responseCode": "00", "messageStatus": "accepted"}', b'{"return_code": "SUCCESS", "errorNo": 0}',
        b'{"status": "notified"}', b'{"state": "not modified"}', b'{"response": "sent", "returnCode": 0}',
        b'{"is_ok": true, "Success": "Y", "errorResponse": null}', b'{"code": 20000, "message": "success"}',
        b'{"code": "1000", "msg": "ok"}', b'{"header": {"isSuccessful": true, "resultCode": 0}}', b'{"d": "ok"}',
        b'{"delivery": "queued", "statusText": "OK", "RequestSuccess": true}',
        b"<!-- a -->" * 6_000, b"<a" * 30_000, b"<!--" * 15_000,
    ],
)  # fmt: skip
def test_an_answer_without_an_error_is_none(body: bytes, style: Style) -> None:
    assert refusal(body, style) is None


REFUSED = b'{"ok": false, "error": "no such hook"}'


@each("style", ["slack", "alertmanager", "json"])
@each(
    "body",
    [
        gzip.compress(REFUSED), REFUSED.decode().encode("utf-16"), REFUSED.decode().encode("utf-16-le"),
        REFUSED.decode().encode("utf-16-be"), REFUSED + b"\0", b"callback(" + REFUSED + b");", b")]}',\n" + REFUSED,
        b"event: error\ndata: " + REFUSED + b"\n\n", b"<br />\n<b>Warning</b>: old call in x.php\n" + REFUSED,
        b'{"ok": true}' + REFUSED, REFUSED + b" <!-- served by a -->", b"/* a */ " + REFUSED,
        b"ok=false&error=no+such+hook", b"status=error&message=no+such+hook",
    ],
)  # fmt: skip
def test_an_error_is_found_whatever_is_around_it(body: bytes, style: Style) -> None:
    found = refusal(body, style)
    assert found is not None
    assert "no such hook" in found.reason


@each("style", ["slack", "alertmanager", "json"])
@each(
    "body",
    [
        b"<head><title>Sign in</title></head>", b"<body>Access denied</body>",
        b'<html><script>{"ok": true}</script><title>Sign in</title></html>',
        b"<br />\n<b>Fatal error</b>:  Uncaught Error: no such table", b'<result success="false"/>',
        b"<TwilioResponse><RestException><Code>20003</Code></RestException></TwilioResponse>",
        b"<response><status>error</status></response>", b"<r><success> false </success></r>",
    ],
)  # fmt: skip
def test_a_part_of_a_page_and_an_error_deeper_in_xml_are_refusals(body: bytes, style: Style) -> None:
    assert refusal(body, style) is not None


@each("style", ["slack", "alertmanager", "json"])
@each(
    "body",
    [
        gzip.compress(b'{"ok": true}'), b"\x1f\x8bnot packed", '{"ok": true}'.encode("utf-16"), b'f({"ok": true});',
        b"<br />\n<b>Warning</b>: old call in x.php\n{\"ok\": true}", b"ok=true&id=7", b"status=success", b"a=b",
        b'{"ok": true}{"ok": true}', b"accepted: {alert 7}", b"{" * 60_000, b'{"' * 30_000, b'{"a":' * 12_000,
        b"<p>Thanks</p>", b"<response><status>ok</status></response>", b'<result success="true"/>',
    ],
)  # fmt: skip
def test_what_is_around_an_answer_is_no_error_of_its_own(body: bytes, style: Style) -> None:
    assert refusal(body, style) is None


def test_a_packed_answer_is_unpacked_to_a_limit() -> None:
    assert refusal(gzip.compress(b" " * 50_000_000 + REFUSED), "json") is None


def test_an_answer_that_is_wrapped_as_deep_as_one_can_be_read_is_read_in_time() -> None:
    for body in (b'{"data":' * 400 + b'{"ok": false}' + b"}" * 400, b"[" * 400 + b'{"ok": false}' + b"]" * 400):
        assert refusal(body, "json") is not None
    assert refusal(b'{"data":' * 8_000, "json") is None


@each("style", ["alertmanager", "json"])
def test_words_alone_are_an_answer_of_slacks_form_only(style: Style) -> None:
    assert refusal(b"no_error_here", style) is None
    assert refusal(b'{"ok": false}', style) is not None


def test_what_is_kept_of_a_reason_is_short_and_holds_no_secret() -> None:
    address = Address(f"https://hooks.example/services/{SECRET}?key=abc123x", "token-of-mine")
    words = f"no hook {address.url} nor /services/{SECRET}, token token-of-mine, key abc123x\n" + "x" * 500
    for body in (words, json.dumps({"ok": False, "error": words}), json.dumps({"errors": [words]})):
        found = refusal(body.encode(), "slack", secrets_of(address))
        assert found is None or len(found.reason) <= MOST_REASON
        for secret in (*SECRET.split("/"), "token-of-mine", "abc123x", "hooks.example"):
            assert found is None or secret not in found.reason
    told = refusal(b'{"error": "key 0123456789abcdef0123 of https://a.example/b is unknown"}', "json")
    assert told is not None
    assert told.reason == "key [hidden] of [hidden] is unknown"


def test_a_refusal_that_no_other_call_mends_is_a_dead_letter_with_its_reason() -> None:
    @over(Reply((b"invalid_", b"payload")))
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint)
        assert isinstance(recorded, WebhookFailed)
        assert (recorded.reason, recorded.error) == ("receiver_refused", "HTTP 200: invalid_payload")
        assert len(endpoint.asked) == 1


def test_a_refusal_that_will_pass_is_called_about_again() -> None:
    @over(Reply((b'{"ok": false, "error": "ratelimited"}',)), Reply((b'{"status": "error", "code": 503}',)), TAKES)
    async def _(endpoint: Endpoint) -> None:
        recorded = await delivered_by(endpoint)
        assert isinstance(recorded, WebhookDelivered)
        assert (recorded.code, recorded.attempts) == (200, 3)


@each("then", ["end", "hang", "cut"])
def test_an_answer_that_breaks_off_or_has_no_end_is_judged_by_what_came(then: str) -> None:
    settings = msgspec.structs.replace(receivers("ops"), answer_ms=300)

    @over(Reply((b"ok",), headers={**JSON, "Content-Length": "9"} if then == "cut" else JSON, then=then))
    async def _(endpoint: Endpoint) -> None:
        assert isinstance(await delivered_by(endpoint, settings), WebhookDelivered)
        assert len(endpoint.asked) == 1


def test_an_endless_answer_is_read_no_further_than_an_error_could_stand() -> None:
    @over(Reply((b"x" * 50_000,) * 20))
    async def _(endpoint: Endpoint) -> None:
        assert isinstance(await delivered_by(endpoint), WebhookDelivered)


def test_the_form_of_the_receiver_decides() -> None:
    settings = msgspec.structs.replace(QUICK, receivers={"ops": Receiver(style="json", url_env="URL_ops")})

    @over(Reply((b"some_words",)))
    async def _(endpoint: Endpoint) -> None:
        recorded: Any = await delivered_by(endpoint, settings)
        assert isinstance(recorded, WebhookDelivered)
