"""Reads why an endpoint refused: its own reason without secrets, its status, and the context that it states. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

MOST_SAID = 300
"""Most characters of an endpoint's reason that are kept."""

HIDDEN = "[hidden]"
"""The replacement for a secret."""

_MOST_READ = 20_000
"""Most bytes of a refusal's body that are read."""

_MOST_SEARCHED = 4_000
"""Most characters of a reason in which secrets are looked for: more than is kept, since hiding them shortens it. The
search takes quadratic time for a long run of punctuation."""

_DEEPEST = 5
"""Most levels of nested JSON in which reasons are looked for."""

_REASON_FIELDS = (
    *("message", "msg", "detail", "error", "errors", "error_description", "reason", "title", "description"),
    *("error_msg", "error_message", "errmsg", "status_msg", "base_resp"),
)
"""Fields of an error that may hold its reason."""

_REASONS_WITHOUT_CHOICE = ("detail", "errors", "error_msg", "error_message", "errmsg", "msg")
"""Fields with the reason of an error, in a document that has no choice. A ``message`` may be an answer of Ollama's."""

_NAMED_SECRET = re.compile(
    r"(?i)\b((?:x-)?api[-_ ]?key(?: provided)?|authorization|bearer|basic|access[-_ ]?token|token|secret|password"
    r"|passwd|cookie|signature|sig)\b(\W{1,6}|\s+(?:is|was|of)\W{1,3})(?!length\b|count\b|limit\b|s\b)"
    r"((?:bearer |basic |token )?[^\s,;\"'<>{}()]{6,})"
)
"""A word for a secret, and the value after it."""

_PREFIXED = re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai|nvapi|key|ghp|glpat|AIza|eyJ)[-_]?[\w*.\u2022\u2026-]{6,}")
"""A key with a known prefix, such as ``sk-``."""

_OPAQUE = re.compile(
    r"(?<![\w/])(?=[a-zA-Z+=]*\d)(?=[\d+=]*[a-zA-Z])[a-zA-Z0-9+=]{24,}(?![\w/])"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
"""Long words of letters and digits, and UUIDs: they may be keys of any other kind."""

_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")
"""The login in an address."""

_STARRED = re.compile(r"[^\s*]{0,80}\*{3,}\S{0,80}")
"""A key that the endpoint has hidden in part by asterisks."""


def is_error(document: Mapping[str, Any]) -> bool:
    """Whether a document reports an error: its ``error`` or a choice's is not empty, or it is an error itself.

    Without choices, a document that gives a reason is an error as well, whatever the names of its fields.
    """
    if _has_content(document.get("error")) or document.get("object") == "error" or document.get("type") == "error":
        return True
    if document.get("choices"):
        return any(map(_has_content, _errors_of_choices(document)))
    return any(document.get(name) for name in _REASONS_WITHOUT_CHOICE) or _is_failed_base(document.get("base_resp"))


def _errors_of_choices(document: Mapping[str, Any]) -> list[Any]:
    """Return the errors in choices: OpenRouter writes the error of a provider into the choice that it broke off."""
    choices = document.get("choices")
    found = [each.get("error") for each in choices if isinstance(each, Mapping)] if isinstance(choices, list) else []
    return [error for error in found if error]


def _is_failed_base(base: Any) -> bool:
    """Whether MiniMax's own status, which stands beside the choices, is that of an error."""
    return isinstance(base, Mapping) and bool(base.get("status_code"))


def _has_content(error: Any) -> bool:
    return any(error.values()) if isinstance(error, Mapping) else bool(error)


def code_of(document: Mapping[str, Any]) -> int:
    """Return the HTTP status that an error states; 0 if it states none."""
    for each in (document.get("error"), *_errors_of_choices(document), document):
        if isinstance(each, Mapping):
            for name in ("code", "status", "status_code", "statusCode"):
                value = each.get(name)
                try:
                    code = int(value) if not isinstance(value, bool) and value is not None else 0
                except (TypeError, ValueError, OverflowError):
                    continue
                if 400 <= code <= 599:
                    return code
    return 0


def reason_in(document: Any) -> str:
    """Return everything that a document gives as the reason of an error, the most specific first."""
    return "; ".join(dict.fromkeys(_reasons(document, 0)))


def reason_of(body: bytes) -> str:
    """Return the reason in the body of a refusal, which may be JSON, a page, or plain text."""
    text = body[:_MOST_READ].decode("utf-8", "replace").strip().removeprefix("\ufeff")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict | list):
        return reason_in(document)
    if text.startswith("<"):
        title = re.search(r"(?is)<title[^>]*>(.*?)</title>", text)
        text = title[1] if title else re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^<>]*>", " ", text)
    return " ".join(text.split())


def without_secrets(said: str, key: str = "") -> str:
    """Return an endpoint's message on one line, cut, with anything hidden that is or looks like a key."""
    line = " ".join(said[:_MOST_SEARCHED].split())
    if key:
        for written in (key, quote(key, safe="")):
            line = re.sub(re.escape(written), HIDDEN, line, flags=re.IGNORECASE)
        # An endpoint may show the ends of a key: "sk-ab12...9xyz".
        ends = [re.escape(key[:8]) + r"\S*", r"\S{0,80}" + re.escape(key[-6:])] if len(key) >= 12 else []
        line = re.sub("|".join(ends), HIDDEN, line) if ends else line
    line = _LOGIN.sub("", line)
    line = _NAMED_SECRET.sub(rf"\1\2{HIDDEN}", line)
    for pattern in (_PREFIXED, _STARRED, _OPAQUE):
        line = pattern.sub(HIDDEN, line)
    line = "".join(character if character.isprintable() else " " for character in line)
    return line if len(line) <= MOST_SAID else line[: MOST_SAID - 1] + "…"


class Overflow(msgspec.Struct, frozen=True):
    """A prompt of ``prompt`` tokens is too long for a context of ``context`` tokens; 0: not stated."""

    context: int = 0
    prompt: int = 0


_OVERFLOWS = re.compile(
    r"(?i)context[ _-]?(?:length|size|window)|exceed_context|n_ctx|maximum (?:input|prompt|allowed) (?:length|tokens)"
    r"|(?:prompt|input|message|request)s?\b.{0,40}\btoo (?:long|large|many tokens)|too many (?:input |prompt )?tokens"
    r"|reduce the length of the (?:messages|prompt|input)|input token count|tokens? exceeds?.{0,40}(?:limit|maximum)"
    r"|`?inputs`? tokens \+ `?max_new_tokens"
)
"""Words with which endpoints say that a prompt is too long."""

_NUMBER = r"(\d[\d,_]{2,12})"
_CONTEXTS = tuple(
    re.compile(pattern.replace("NUMBER", _NUMBER), re.I)
    for pattern in (
        r"\bn_ctx\W{1,4}NUMBER",
        r"(?:maximum|max\.?|available|total)? ?(?:model )?context[ _-]?(?:length|size|window)[^.\d]{0,30}?NUMBER",
        r"must be (?:<=|at most|less than(?: or equal to)?|no more than) NUMBER",
        r">=? ?NUMBER (?:maximum|limit|allowed)",
        r"maximum (?:number of )?(?:input |prompt )?tokens (?:allowed|is|of)?\W{0,3}NUMBER",
        r"(?:limit|maximum|allowed)(?: of| is|:)? \(?NUMBER",
    )
)
"""Words around the number of tokens of the context."""

_PROMPTS = tuple(
    re.compile(pattern.replace("NUMBER", _NUMBER), re.I)
    for pattern in (
        r"n_prompt_tokens\W{1,4}NUMBER",
        r"NUMBER (?:tokens )?(?:of text input|in (?:the|your) (?:messages|prompt|input)|input tokens|prompt tokens)",
        r"(?:has|contains|given:?|is too long:) NUMBER (?:`inputs` |input )?tokens",
        r"(?:resulted in|requested(?: about)?|count(?: of)?) \(?NUMBER",
    )
)
"""Words around the number of tokens of the prompt."""


def overflow_in(said: str) -> Overflow | None:
    """Return what a refusal says of a prompt that is too long; None if that is not its reason."""
    if not _OVERFLOWS.search(said):
        return None
    return Overflow(_first_number(_CONTEXTS, said), _first_number(_PROMPTS, said))


def _first_number(patterns: tuple[re.Pattern[str], ...], said: str) -> int:
    found = next((match for pattern in patterns if (match := pattern.search(said))), None)
    return int(re.sub(r"[,_]", "", found[1])) if found else 0


def _reasons(value: Any, depth: int) -> list[str]:
    if isinstance(value, str):
        # A gateway may include the error of its own endpoint as text within its own.
        return [value] if value.strip() else []
    if depth > _DEEPEST:
        return []
    if isinstance(value, list):
        return [each for part in value[:20] for each in _reasons(part, depth + 1)]
    if not isinstance(value, dict):
        return []
    found = [each for name in _REASON_FIELDS for each in _reasons(value.get(name), depth + 1)]
    found += [each for error in _errors_of_choices(value)[:20] for each in _reasons(error, depth + 1)]
    location = value.get("loc")  # the part of the request that a validator rejects
    if isinstance(location, list):
        found = [f"{'.'.join(map(str, location))}: {each}" for each in found]
    for name in ("param", "code", "type", "n_ctx", "n_prompt_tokens"):
        word = value.get(name)
        if depth and isinstance(word, str | int) and not isinstance(word, bool) and str(word):
            found.append(f"{name} {word}")
    metadata = value.get("metadata")
    return found + (_reasons(metadata.get("raw"), depth + 1) if isinstance(metadata, dict) else [])
