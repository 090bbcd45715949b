"""What a collector says under a good status: OTLP has it report there which spans it refused. Pure.

An answer is ``ExportTraceServiceResponse``, as protobuf or JSON, mostly an empty one. Something else may stand at the
address: a page of a login or a proxy, or a server that answers everything with 200 and an error inside. It took no
spans.
"""

import msgspec

MOST_BYTES = 64 * 1024
"""Most bytes of an answer that are read."""

_MOST_MESSAGE = 200
"""Most characters of a collector's own message that are kept."""

NO_COLLECTOR = "not a collector's answer"


class Answer(msgspec.Struct, frozen=True):
    """What an answer says: ``refused`` spans are lost for good, and the ``message`` says why.

    Unless it ``is_collectors``, nothing was taken, and the message says what came.
    """

    refused: int = 0
    message: str = ""
    is_collectors: bool = True


class _Partial(msgspec.Struct, rename="camel", frozen=True):
    """``partialSuccess``: protobuf's 64-bit numbers are written as text in JSON."""

    rejected_spans: int | str = 0
    error_message: str = ""


class _Document(msgspec.Struct, rename="camel", frozen=True):
    partial_success: _Partial | None = None


def answer_of(body: bytes, kind: str) -> Answer:
    """Read an answer with a good status, or as much of it as came; ``kind`` is its content type."""
    if not body.strip():
        return Answer()
    if "protobuf" in kind:
        return _of_protobuf(body)
    from actors.webhook.response_verdicts import refusal  # its package imports the HTTP client

    found = refusal(body, "json")
    if found is not None:
        return Answer(message=f"{NO_COLLECTOR}: {found.reason}", is_collectors=False)
    try:
        partial = msgspec.json.decode(body, type=_Document).partial_success or _Partial()
        return _of_partial(int(partial.rejected_spans), partial.error_message)
    except (msgspec.DecodeError, ValueError):
        return Answer()  # a word such as "OK": its status counts


def _of_protobuf(body: bytes) -> Answer:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it comes without types
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(body).partial_success
    except DecodeError:
        return Answer()  # cut short: its status counts
    return _of_partial(partial.rejected_spans, partial.error_message)


def _of_partial(refused: int, message: str) -> Answer:
    """A message without refused spans is a warning of the collector's, and no refusal."""
    return Answer(max(0, refused), message[:_MOST_MESSAGE])
