import re
from importlib.util import find_spec

import pytest

from schemas import catalogue
from schemas.actor import Scope
from schemas.catalogue import CATALOGUE, decode_event, entry_of, owned_by, prefixes_of, requests_to
from schemas.entry import Entry
from schemas.event import ROOT, Configured, Event, Failed, encode_event
from schemas.input_path import GUARDS, STAGE_OF, scopes
from tests.each import each
from tests.schemas.write_samples import SAMPLES, sample_file

ENTRIES = list(CATALOGUE.values())
OWNERS = sorted({entry.owner for entry in ENTRIES})

every_entry = each("entry", ENTRIES, named=lambda entry: entry.topic)
every_owner = each("owner", OWNERS)


@every_entry
def test_a_subject_is_literal_and_under_the_root(entry: Entry) -> None:
    assert re.fullmatch(rf"{ROOT}(\.[a-z][a-z0-9_]*)+", entry.topic)


@every_entry
def test_a_subject_has_a_struct_that_says_what_it_is(entry: Entry) -> None:
    assert issubclass(entry.event, Event)
    assert entry.event.__struct_config__.frozen
    assert entry.event.__doc__ is not None
    assert len(entry.event.__doc__) > 20


@every_entry
def test_a_subject_has_an_owner_and_a_meaning_in_one_line(entry: Entry) -> None:
    assert re.fullmatch("[a-z][a-z0-9_]*", entry.owner)
    assert re.fullmatch(r"[A-Z][^\n]{10,159}\.", entry.meaning)


@every_entry
def test_a_sample_round_trips(entry: Entry) -> None:
    assert type(entry.sample) is entry.event
    assert decode_event(entry.topic, encode_event(entry.sample), entry.version) == entry.sample


@every_entry
def test_a_body_names_its_own_subject(entry: Entry) -> None:
    assert encode_event(entry.sample).startswith(f'{{"topic":"{entry.topic}"'.encode())


@every_entry
def test_a_newer_writer_s_fields_are_ignored(entry: Entry) -> None:
    body = encode_event(entry.sample)[:-1] + b',"field_of_a_later_release":{"a":[1]}}'
    assert decode_event(entry.topic, body, entry.version) == entry.sample


@every_entry
def test_a_stored_sample_of_every_version_is_still_read(entry: Entry) -> None:
    for version in range(1, entry.version + 1):
        file = sample_file(entry, version)
        assert file.exists(), f"{file.name} is missing: python -m tests.schemas.write_samples, and commit it"
        event = decode_event(entry.topic, file.read_bytes(), version)
        assert isinstance(event, entry.event)


def test_a_stored_sample_belongs_to_a_version_that_is_still_known() -> None:
    known = {sample_file(entry, version) for entry in ENTRIES for version in range(1, entry.version + 1)}
    assert {file.name for file in SAMPLES.iterdir()} - {file.name for file in known} == set()


def test_a_prefix_belongs_to_one_owner() -> None:
    owners_by_prefix: dict[str, set[str]] = {}
    for entry in ENTRIES:
        owners_by_prefix.setdefault(entry.prefix, set()).add(entry.owner)
    assert {prefix: owners for prefix, owners in owners_by_prefix.items() if len(owners) > 1} == {}


def test_no_owner_takes_the_prefix_of_queries() -> None:
    assert "query" not in {entry.prefix for entry in ENTRIES}


def test_an_event_type_stands_for_one_subject() -> None:
    assert len({entry.event for entry in ENTRIES}) == len(ENTRIES)


@every_owner
def test_an_owner_that_decides_records_both_its_settings_and_its_failures(owner: str) -> None:
    configured = [entry for entry in owned_by(owner) if issubclass(entry.event, Configured)]
    failed = [entry for entry in owned_by(owner) if issubclass(entry.event, Failed)]
    decides = find_spec(f"actors.{owner}") is not None and find_spec(f"actors.{owner}.decider") is not None
    if not decides and failed:
        assert len(failed) == 1, "an effector has failures, and no settings that decisions rest on"
        assert not configured
    elif decides or configured:
        assert len(configured) == len(failed) == 1
        assert configured[0].topic.endswith(".configured")
        assert failed[0].topic.endswith(".failed")
        assert configured[0].prefix == failed[0].prefix, "the fence spans one prefix"
        assert configured[0].spontaneous
        assert failed[0].severity is not None


@every_owner
def test_an_owner_s_prefixes_are_those_of_its_subjects(owner: str) -> None:
    assert set(prefixes_of(owner)) == {entry.prefix for entry in owned_by(owner)}


@every_entry
def test_an_entry_is_found_by_event_and_by_type(entry: Entry) -> None:
    assert entry_of(entry.sample) is entry is entry_of(entry.event)
    assert entry.scope in Scope


def test_a_subject_listed_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from schemas.vocabulary import clock, gateway

    monkeypatch.setattr(gateway, "ENTRIES", (*gateway.ENTRIES, clock.ENTRIES[0]))
    with pytest.raises(ValueError, match=r"forged_id\.clock\.fired is listed twice"):
        catalogue._load()


def test_what_holds_a_call_asks_a_model_and_nothing_else_does() -> None:
    assert set(requests_to("llm")) == {entry.event for entry in ENTRIES if "call" in entry.event.__struct_fields__}


def test_whoever_is_asked_can_answer() -> None:
    assert {entry.asks for entry in ENTRIES if entry.asks} <= set(scopes())


def test_every_stage_before_the_deliberation_has_an_event_that_lets_an_input_pass() -> None:
    passing = {STAGE_OF[entry.owner] for entry in ENTRIES if entry.verdict == "passes"}
    assert passing == {STAGE_OF[guard] for guard in GUARDS}


def test_only_actors_of_the_path_give_verdicts() -> None:
    assert {entry.owner for entry in ENTRIES if entry.verdict} == {*GUARDS, "router", "responder"}
