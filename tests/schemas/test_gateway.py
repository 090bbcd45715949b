"""What whoever publishes an input by hand may write in it."""

import json

import msgspec

from schemas.event import encode_event
from schemas.vocabulary.gateway import InputReceived, Layer


def read(**fields: object) -> InputReceived:
    body = {"topic": "forged_id.input.received", "text": "Please summarise this.", **fields}
    return msgspec.json.decode(json.dumps(body), type=InputReceived)


def test_documents_and_tool_results_of_an_input_are_read_as_layers_of_those_roles() -> None:
    received = read(layers=[{"role": "system", "content": "Be brief."}], documents=["page"], tool_results=["21"])
    assert received.layers == (
        Layer(role="system", content="Be brief."),
        Layer(role="document", content="page"),
        Layer(role="tool", content="21"),
    )
    assert (received.documents, received.tool_results) == ((), ())


def test_an_input_that_was_read_and_written_again_says_the_same() -> None:
    received = read(documents=["page"])
    assert msgspec.json.decode(encode_event(received), type=InputReceived) == received


def test_an_input_is_read_by_older_releases_whatever_newer_ones_add() -> None:
    assert read(something_newer=1) == read()
