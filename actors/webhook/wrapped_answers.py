"""What an answer holds whatever is around it: bytes in another encoding, JSON with other text around, a form. Pure.

Some receivers, or what stands before them, put something around the JSON of an answer: PHP its warnings, others a call
(``f({...});``), a guard against scripts (``)]}'``), the ``data:`` of an event stream, or a comment.
"""

import codecs
import json
import re
import zlib
from typing import Any
from urllib.parse import parse_qsl

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 64 * 1024
"""Most bytes to which a compressed answer is unpacked."""

_ENCODINGS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MOST_OBJECTS = 16
"""Most objects, and most attempts to read one, in a text."""

_OBJECT = re.compile(r"\{\s*[\"}]")
_FORM = re.compile(r"[\w.\[\]-]{1,64}=[^&=\s]*(?:&[\w.\[\]-]{1,64}=[^&=\s]*)*")
_DECODER = json.JSONDecoder()


def text_of(body: bytes) -> str:
    """Return the text of an answer, unpacked where it came compressed although nobody asked for that."""
    if body.startswith(_GZIP):
        try:
            body = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, _MOST_BYTES)
        except zlib.error:
            return ""  # packed in a way that cannot be read: it tells nothing
    mark, encoding = next(((mark, name) for mark, name in _ENCODINGS if body.startswith(mark)), (b"", "utf-8"))
    if not mark and body[1:2] == b"\0":
        encoding = "utf-16-le"
    elif not mark and body[:1] == b"\0":
        encoding = "utf-16-be"
    return body[len(mark) :].decode(encoding, errors="replace").strip(" \t\r\n\0")


def objects_in(text: str) -> list[Any]:
    """Return the first JSON objects in a text that is not JSON as a whole."""
    found: list[Any] = []
    at = 0
    for _ in range(_MOST_OBJECTS):
        opening = _OBJECT.search(text, at)
        if opening is None:
            break
        try:
            value, at = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            at = opening.start() + 1
        else:
            found.append(value)
    return found


def form_in(text: str) -> dict[str, str]:
    """Return the fields of a text that is a form, such as ``status=error&message=no+hook``; empty for others."""
    return dict(parse_qsl(text)) if _FORM.fullmatch(text) else {}
