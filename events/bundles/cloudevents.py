"""Stored messages as CloudEvents in the JSON format (structured mode), one object per line, and back, exactly. Pure.

A header ``ce-x`` is the attribute ``x`` with its percent-encoding undone, ``Content-Type`` is ``datacontenttype``. Our
own attributes: ``seq`` (stream sequence) and ``timens`` (server time, Unix nanoseconds) as decimal text, since the
format's integers have 32 bits; ``natssubject``, the stored subject; and ``natsheaders``, a JSON text of every header
that no attribute gives back exactly. ``data`` is the body if encoding it as JSON again gives the same bytes; otherwise
``data_base64`` holds it.
"""

import base64
import binascii
import json
import re
from typing import Any
from urllib.parse import unquote

import msgspec

from events.log import Stored
from schemas.envelope import CONTENT_TYPE, encode_value

_PREFIX = "ce-"
_CONTENT = "Content-Type"
# Attributes that are not made from a ``ce-`` header.
_OWN = frozenset({"seq", "timens", "natssubject", "natsheaders", "data", "datacontenttype"})
_ATTRIBUTE_NAME = re.compile("[a-z0-9]+")

_INT64 = 2**63

_line_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text_decoder = msgspec.json.Decoder(str)
_any_decoder = msgspec.json.Decoder()


class BadLine(ValueError):
    """A line that is not an exported event; the message says what is wrong with it."""

    code = "bad_line"


def to_line(stored: Stored) -> bytes:
    """Return a message as a line of JSON, without the line's end.

    Raises:
        UnicodeEncodeError: a header or the subject holds lone surrogates, which JSON cannot carry.
    """
    line: dict[str, Any] = {}
    others: dict[str, str] = {}
    # Sorted, so that equal headers give equal lines, whatever their order was.
    for name, value in sorted(stored.headers.items()):
        attribute = name.removeprefix(_PREFIX)
        plain = unquote(value, errors="replace")
        if name == _CONTENT and value == CONTENT_TYPE:
            line["datacontenttype"] = value
        elif (
            name != attribute
            and _ATTRIBUTE_NAME.fullmatch(attribute)
            and attribute not in _OWN
            and encode_value(plain) == value
        ):
            line[attribute] = plain
        else:
            others[name] = value
    line["seq"] = str(stored.seq)
    line["timens"] = str(stored.time_ns)
    line["natssubject"] = stored.subject
    if others:
        # Escaped to ASCII: another client's header may hold lone surrogates, which UTF-8 cannot encode.
        line["natsheaders"] = json.dumps(others, separators=(",", ":"))
    if _is_reencoded_alike(stored.data):
        line["data"] = msgspec.Raw(stored.data)
    else:
        line["data_base64"] = base64.b64encode(stored.data).decode()
    return msgspec.json.encode(line)


def from_line(line: bytes) -> Stored:
    """Return the message of a line that :func:`to_line` wrote.

    Raises:
        BadLine: it is no line of :func:`to_line`, or would not be written the same way again.
    """
    try:
        found = _line_decoder.decode(line)
        headers: dict[str, str] = {}
        for name, raw in found.items():
            if name == "datacontenttype":
                headers[_CONTENT] = _text_decoder.decode(raw)
            elif name not in _OWN and name != "data_base64":
                headers[_PREFIX + name] = encode_value(_text_decoder.decode(raw))
        if "natsheaders" in found:
            headers |= msgspec.convert(json.loads(_text_decoder.decode(found["natsheaders"])), dict[str, str])
        stored = Stored(
            _number(found["seq"], 1),
            _number(found["timens"], -_INT64),
            _text_decoder.decode(found["natssubject"]),
            headers,
            _body(found),
        )
        # A message has exactly one line, so that its bytes are known: any other form of it is refused.
        same = to_line(stored) == line
    except KeyError as missing:
        raise BadLine(f"the attribute {missing} is missing") from missing
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise BadLine(str(wrong)) from wrong
    if not same:
        raise BadLine("it is not spelled as an export spells it, so that its bytes would not come back")
    return stored


def _number(raw: msgspec.Raw, least: int) -> int:
    number = int(_text_decoder.decode(raw))
    if not least <= number < _INT64:
        raise BadLine(f"the number {number} is out of range")
    return number


def _is_reencoded_alike(data: bytes) -> bool:
    try:
        return bool(msgspec.json.encode(_any_decoder.decode(data)) == data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _body(fields: dict[str, msgspec.Raw]) -> bytes:
    if "data" in fields:
        return bytes(fields["data"])
    try:
        return base64.b64decode(_text_decoder.decode(fields["data_base64"]), validate=True)
    except binascii.Error as wrong:
        raise BadLine(f"data_base64 is not base64: {wrong}") from wrong
