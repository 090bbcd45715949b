import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator, ValidationError
from jsonschema.validators import validator_for

from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.envelope import Envelope, encode_headers
from schemas.errors import UnknownTopic
from schemas.event import encode_event
from schemas.export import asyncapi_document, jsonschema_document, subjects_rows, subjects_table
from schemas.export.asyncapi import to_draft_07
from schemas.export.headers import headers_schema, sample_headers
from tests.each import each

OFFICIAL = Path(__file__).parent / "official" / "asyncapi-3.0.0.json"
schema_of = cache(jsonschema_document)
"""The schema of a subject, or of any event: several tests look at each, and none changes it."""

every_entry = each("entry", CATALOGUE.values(), named=lambda entry: entry.topic)


@pytest.fixture(scope="module")
def asyncapi() -> dict[str, Any]:
    """The document, for tests that only read it: it takes tens of milliseconds to make."""
    return asyncapi_document()


@pytest.fixture(scope="module")
def any_event() -> Draft202012Validator:
    """Holds a body against the schema of all events."""
    return Draft202012Validator(schema_of(None))


def sample_body(entry: Entry) -> Any:
    return json.loads(encode_event(entry.sample))


def at(document: Any, reference: str) -> Any:
    for token in reference.removeprefix("#/").split("/"):
        document = document[token]
    return document


def references(document: Any) -> set[str]:
    if isinstance(document, list):
        return set().union(*(references(each) for each in document))
    if not isinstance(document, dict):
        return set()
    own = {document["$ref"]} if isinstance(document.get("$ref"), str) else set()
    return own.union(*(references(each) for each in document.values()))


# JSON Schema


@each("topic", [None, *CATALOGUE])
def test_a_schema_is_a_valid_one_of_draft_2020_12(topic: str | None) -> None:
    document = schema_of(topic)
    assert validator_for(document) is Draft202012Validator
    Draft202012Validator.check_schema(document)


@every_entry
def test_a_sample_satisfies_its_schema_and_that_of_any_event(entry: Entry, any_event: Draft202012Validator) -> None:
    Draft202012Validator(schema_of(entry.topic)).validate(sample_body(entry))
    any_event.validate(sample_body(entry))


@every_entry
def test_a_body_under_another_subject_fails_its_schema(entry: Entry) -> None:
    body = sample_body(entry) | {"topic": "forged_id.another"}
    with pytest.raises(ValidationError):
        Draft202012Validator(schema_of(entry.topic)).validate(body)


@every_entry
def test_a_body_without_a_required_field_fails_its_schema(entry: Entry) -> None:
    required = [field.encode_name for field in msgspec.structs.fields(entry.event) if field.required]
    for name in ("topic", *required):
        body = {key: value for key, value in sample_body(entry).items() if key != name}
        with pytest.raises(ValidationError, match=name):
            Draft202012Validator(schema_of(entry.topic)).validate(body)


@each("topic", [None, *CATALOGUE])
def test_a_schema_refers_to_nothing_outside_itself(topic: str | None) -> None:
    document = schema_of(topic)
    for reference in references(document):
        assert at(document, reference)["type"]


def test_people_s_words_are_marked() -> None:
    definitions = jsonschema_document("forged_id.input.received")["$defs"]
    assert definitions["InputReceived"]["properties"]["text"]["x-personal"] is True


def test_a_subject_outside_the_catalogue_has_no_schema() -> None:
    with pytest.raises(UnknownTopic, match=r"forged_id\.nothing"):
        jsonschema_document("forged_id.nothing")


# AsyncAPI


def test_the_document_satisfies_the_official_schema_of_asyncapi_3() -> None:
    official = json.loads(OFFICIAL.read_text())
    Draft7Validator(official).validate(asyncapi_document())


def test_the_official_schema_notices_a_wrong_document() -> None:
    document = asyncapi_document()
    document["operations"]["reflex.appends"]["action"] = "publish"
    assert not Draft7Validator(json.loads(OFFICIAL.read_text())).is_valid(document)


def test_asyncapi_s_own_parser_finds_no_error(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    npm = shutil.which("npm")
    found = (
        subprocess.run([npm, "root", "-g"], capture_output=True, text=True, timeout=60).stdout.strip() if npm else ""
    )
    environment = os.environ | {"NODE_PATH": os.environ.get("NODE_PATH", found)}
    probe = [node, "-e", "require.resolve('@asyncapi/parser')"]
    if subprocess.run(probe, env=environment, capture_output=True, timeout=60).returncode != 0:
        pytest.skip("@asyncapi/parser is not installed (npm install --global @asyncapi/parser)")
    file = tmp_path / "asyncapi.json"
    file.write_text(json.dumps(asyncapi_document()))
    script = """
    const {Parser} = require('@asyncapi/parser');
    new Parser().parse(require('fs').readFileSync(process.argv[1], 'utf8')).then(({document, diagnostics}) =>
        console.log(JSON.stringify({
            channels: document ? document.channels().length : 0,
            wrong: diagnostics.filter(each => each.severity < 2).map(each => `${each.path.join('/')}: ${each.message}`),
        })));
    """
    answer = subprocess.run(
        [node, "-e", script, str(file)], env=environment, capture_output=True, check=True, timeout=120
    )
    assert json.loads(answer.stdout) == {"channels": len(CATALOGUE) + 1, "wrong": []}


def test_every_reference_leads_somewhere(asyncapi: dict[str, Any]) -> None:
    for reference in references(asyncapi):
        assert at(asyncapi, reference)


@every_entry
def test_a_subject_is_a_channel_at_its_literal_address(entry: Entry, asyncapi: dict[str, Any]) -> None:
    channel = asyncapi["channels"][entry.topic]
    assert channel["address"] == entry.topic
    assert channel["description"] == entry.meaning


@every_entry
def test_only_its_owner_sends_on_a_subject(entry: Entry, asyncapi: dict[str, Any]) -> None:
    operations = asyncapi["operations"]
    on_it = {
        name for name, operation in operations.items() if at(operation, "channel/$ref").endswith(f"/{entry.topic}")
    }
    to_log = {
        name
        for name, operation in operations.items()
        if {"$ref": f"#/channels/stored/messages/{entry.topic}"} in operation["messages"]
    }
    assert on_it == {f"{entry.owner}.sends.{entry.topic}"}
    assert to_log == {f"{entry.owner}.appends"}


def test_the_stored_subjects_address_names_both_partitions(asyncapi: dict[str, Any]) -> None:
    channel = asyncapi["channels"]["stored"]
    assert channel["address"] == "log.{agentPartition}.{sessionPartition}.{event}"
    assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel["parameters"])


@every_entry
def test_an_example_satisfies_the_payload_and_header_schemas_beside_it(entry: Entry, asyncapi: dict[str, Any]) -> None:
    message = asyncapi["components"]["messages"][entry.topic]
    for part in ("payload", "headers"):
        validator = Draft7Validator({**asyncapi, "$ref": message[part]["$ref"]})
        for example in message["examples"]:
            validator.validate(example[part])


def test_a_tuple_is_rewritten_for_draft_07() -> None:
    schema = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}
    for value, good in (([1, "a"], True), ([1, 2], False), ([1, "a", 3], False)):
        assert Draft202012Validator(schema).is_valid(value) is good
        assert Draft7Validator(to_draft_07(schema)).is_valid(value) is good


def test_a_field_that_is_named_like_a_keyword_is_left_alone() -> None:
    schema = {"type": "object", "properties": {"prefixItems": {"type": "string"}}}
    assert to_draft_07(schema) == schema


# Headers


def test_the_header_schema_lists_every_header_that_an_envelope_can_have() -> None:
    full = Envelope(
        id="1", topic="forged_id.resolved", source="review", time="2025-01-01T00:00:00Z", agent="a", session="s",
        exchange="x", cause="c", index=1, count=2, version=2, build="b",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )  # fmt: skip
    assert set(headers_schema()["properties"]) == {*encode_headers(full), "nx-latency-us", "nx-budget-us"}
    Draft202012Validator(headers_schema()).validate(encode_headers(full))


def test_required_headers_are_those_of_the_emptiest_envelope() -> None:
    bare = encode_headers(Envelope(id="1", topic="forged_id.resolved", source="review", time="2025-01-01T00:00:00Z"))
    assert sorted(headers_schema()["required"]) == sorted(bare)


@every_entry
def test_sample_headers_satisfy_their_schema(entry: Entry) -> None:
    Draft202012Validator(headers_schema()).validate(sample_headers(entry))


# The table, and determinism


def test_the_table_has_a_line_for_every_subject() -> None:
    lines = subjects_table().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == list(CATALOGUE)
    assert {line.replace("\\|", "").count("|") for line in lines} == {7}


def test_rows_carry_what_the_catalogue_says() -> None:
    (row,) = [row for row in subjects_rows() if row.subject == "forged_id.clock.failed"]
    assert (row.stored, row.owner, row.severity) == ("log.*.*.clock.failed", "clock", "critical")


def test_exports_are_the_same_every_time() -> None:
    def printed(seed: str) -> bytes:
        program = (
            "import json; from schemas.export import *;"
            "print(json.dumps([asyncapi_document(), jsonschema_document()]), subjects_table())"
        )
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=60
        ).stdout

    assert printed("1") == printed("2")
