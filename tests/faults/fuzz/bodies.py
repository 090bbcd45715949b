"""HTTP bodies that no client of ours sends, for every operation of the gateway that takes one."""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

DEEP = 5_000
LARGE = 3 * 1024 * 1024
"""Bytes: more than any endpoint takes."""
JSON = "application/json"


class BadBody(msgspec.Struct, frozen=True):
    """A request: ``wrong`` says in words what is wrong with its body."""

    wrong: str
    method: str
    path: str
    body: bytes
    content_type: str = JSON


def bad_bodies(document: Mapping[str, Any], seed: int) -> Iterator[BadBody]:
    """Draw bad bodies for every operation of an OpenAPI document that takes a body."""
    draw = random.Random(f"bodies-{seed}")
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            if "requestBody" not in operation:
                continue
            where = "".join(f"fuzzed-{seed}" if part.startswith("{") else part for part in _parts(path))
            for wrong, body in _wrong(draw):
                yield BadBody(f"{wrong} for {method.upper()} {path}", method.upper(), where, body)
            yield BadBody(f"plain text for {method.upper()} {path}", method.upper(), where, b"hello", "text/plain")
            yield BadBody(f"no type for {method.upper()} {path}", method.upper(), where, b'{"a":1}', "")


def _parts(path: str) -> Iterator[str]:
    """Split a path into its words and its ``{parameters}``."""
    while path:
        before, brace, rest = path.partition("{")
        yield before
        if not brace:
            return
        name, _, path = rest.partition("}")
        yield "{" + name


def _wrong(draw: random.Random) -> Iterator[tuple[str, bytes]]:
    texts = ("text", "messages", "input", "loop_id", "citizen", "session", "exchange", "verdict", "model")
    wild = {name: draw.choice([None, True, -1, 1.5, [], {}, "x" * 5000, "\x00", [[1]]]) for name in texts}
    yield "no body", b""
    yield "half a body", b'{"text": "hel'
    yield "no object", draw.choice([b"null", b"[]", b'"x"', b"7", b"NaN", b"true"])
    yield "fields of wrong types", json.dumps(wild).encode()
    yield "bad UTF-8", b'{"text": "\xff\xfe", "messages": [{"role": "user", "content": "\xc3"}]}'
    yield (
        "lone surrogates",
        rb'{"text": "\ud800", "messages": [{"role": "user", "content": "\udfff"}]}',
    )
    yield "NULs", b'{"text": "a\x00b"}'
    yield "deep objects", b'{"text":' * DEEP + b"1" + b"}" * DEEP
    yield "deep lists", b'{"messages":' + b"[" * DEEP + b"]" * DEEP + b"}"
    yield "a huge body", b'{"text": "' + b"x" * LARGE + b'"}'
    yield "a huge number", b'{"arousal": ' + b"9" * 5000 + b"}"
    yield "a field twice", b'{"text": "a", "text": "b"}'
