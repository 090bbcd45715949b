"""Bundles: sound ones come back whole, others are refused."""

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from events.bundles import Manifest, read_events, unpack, write_bundle
from events.bundles.archive import FORMAT
from events.errors import LedgerDamaged, Misconfigured
from events.ledger import verify
from events.log import Stored
from tests.each import each
from tests.events.ledger.messages import PARTITIONS, STREAM, exchanges, flip, read
from tests.events.recording import PARTITIONS as RECORDED
from tests.events.whatif.asking import live

MESSAGES = exchanges(3)


def bundle(path: Path, messages: Sequence[Stored] = MESSAGES) -> Manifest:
    async def batches() -> AsyncIterator[Sequence[Stored]]:
        for start in range(0, len(messages), 5):
            yield messages[start : start + 5]

    origin = Manifest(
        format=FORMAT, project="0.1.0", stream=STREAM, agent_partitions=PARTITIONS.agents,
        session_partitions=PARTITIONS.sessions, events=0, last_seq=0, head="", redacted=False, original_head="",
        versions={},
    )  # fmt: skip
    return asyncio.run(write_bundle(path, batches(), origin))


def content(path: Path) -> list[Stored]:
    return [stored for batch in read_events(path) for stored in batch]


def test_events_come_back_as_they_were(tmp_path: Path):
    bundle(tmp_path / "a.nxb")
    assert content(tmp_path / "a.nxb") == MESSAGES


def test_equal_events_make_equal_files(tmp_path: Path):
    bundle(tmp_path / "a.nxb")
    bundle(tmp_path / "b.nxb", content(tmp_path / "a.nxb"))
    assert (tmp_path / "a.nxb").read_bytes() == (tmp_path / "b.nxb").read_bytes()


def test_the_ledger_of_a_bundle_has_its_chain(tmp_path: Path):
    manifest = bundle(tmp_path / "a.nxb")
    asyncio.run(unpack(tmp_path / "a.nxb", tmp_path / "a.db"))
    found = verify(tmp_path / "a.db")
    assert (found.head, found.rows, found.finding_count) == (manifest.head, len(MESSAGES), 0)
    assert read(tmp_path / "a.db") == MESSAGES


def test_a_ledger_is_never_overwritten(tmp_path: Path):
    bundle(tmp_path / "a.nxb")
    (tmp_path / "a.db").write_bytes(b"mine")
    with pytest.raises(Misconfigured, match="exists"):
        asyncio.run(unpack(tmp_path / "a.nxb", tmp_path / "a.db"))
    assert (tmp_path / "a.db").read_bytes() == b"mine"


def test_a_ledger_that_cannot_be_written_is_named(tmp_path: Path):
    bundle(tmp_path / "a.nxb")
    (tmp_path / "a.db.part").mkdir()
    with pytest.raises(Misconfigured, match=r"a\.db cannot be written"):
        asyncio.run(unpack(tmp_path / "a.nxb", tmp_path / "a.db"))


def test_a_gap_is_not_bundled(tmp_path: Path):
    with pytest.raises(Misconfigured, match="2 is missing"):
        bundle(tmp_path / "a.nxb", [MESSAGES[0], MESSAGES[2]])
    assert list(tmp_path.iterdir()) == []


def test_no_turned_bit_passes_as_another_content(tmp_path: Path):
    bundle(tmp_path / "a.nxb", MESSAGES[:2])
    sound = (tmp_path / "a.nxb").read_bytes()
    broken = tmp_path / "b.nxb"
    found = 0
    # Every third: each byte is met, and each place of a bit within one.
    for bit in range(0, 8 * len(sound), 3):
        broken.write_bytes(flip(sound, bit))
        try:
            assert content(broken) == MESSAGES[:2]
        except (LedgerDamaged, Misconfigured):
            found += 1
    # The others are in fields of the archive that nobody reads, such as dates: harmless, as the loop has seen.
    assert found


def test_a_cut_bundle_is_refused(tmp_path: Path):
    bundle(tmp_path / "a.nxb")
    sound = (tmp_path / "a.nxb").read_bytes()
    for length in range(4, len(sound), 3):
        (tmp_path / "b.nxb").write_bytes(sound[:length])
        with pytest.raises(LedgerDamaged):
            content(tmp_path / "b.nxb")


@each("names", [["../events.jsonl"], ["events.jsonl"], ["events.jsonl", "manifest.json", "more"], []])
def test_another_archive_is_refused(tmp_path: Path, names: list[str]):
    with zipfile.ZipFile(tmp_path / "b.nxb", "w") as archive:
        for name in names:
            archive.writestr(name, b"{}")
    with pytest.raises(LedgerDamaged, match="no bundle"):
        content(tmp_path / "b.nxb")


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path):
    manifest = bundle(tmp_path / "a.nxb")
    with zipfile.ZipFile(tmp_path / "b.nxb", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("events.jsonl", bytes(32 * 1024 * 1024))
        archive.writestr("manifest.json", msgspec.json.encode(manifest))
    with pytest.raises(LedgerDamaged, match="line 1 has no end"):
        content(tmp_path / "b.nxb")


TALK = live([("morning", "Hello!"), ("evening", "Thanks!")]).log


def claiming(path: Path, messages: Sequence[Stored], **claims: object) -> Path:
    """Write a bundle whose manifest claims something else; its events and their chain are sound."""
    manifest = msgspec.structs.replace(bundle(path, messages), **claims)
    lines = zipfile.ZipFile(path).read("events.jsonl")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("events.jsonl", lines)
        archive.writestr("manifest.json", msgspec.json.encode(manifest))
    return path


@each(
    "claims",
    [
        {"agent_partitions": 0},
        {"session_partitions": -1},
        {"session_partitions": 100},
        {"stream": "a b>*"},
        {"stream": "../x"},
        {"stream": ""},
        {"original_head": "zz"},
        {"events": -1},
    ],
    named=str,
)
def test_a_manifest_beyond_all_bounds_is_refused(tmp_path: Path, claims: dict[str, object]):
    with pytest.raises(LedgerDamaged, match="its manifest cannot be read"):
        content(claiming(tmp_path / "a.nxb", MESSAGES, **claims))


@pytest.mark.parametrize("more", [{"format": FORMAT + 1}, {"sealed_by": "x"}], ids=["format", "field"])
def test_a_bundle_of_a_later_release_is_told_as_that_and_not_as_damaged(tmp_path: Path, more: dict[str, object]):
    bundle(tmp_path / "a.nxb")
    with zipfile.ZipFile(tmp_path / "a.nxb") as archive:
        lines, manifest = archive.read("events.jsonl"), json.loads(archive.read("manifest.json"))
    with zipfile.ZipFile(tmp_path / "later.nxb", "w") as archive:
        archive.writestr("events.jsonl", lines)
        archive.writestr("manifest.json", json.dumps(manifest | {"project": "7.0.0"} | more))
    with pytest.raises(Misconfigured, match=r"neuraxis '7\.0\.0' wrote it; use that one"):
        content(tmp_path / "later.nxb")


@pytest.mark.parametrize(
    "claims", [{"session_partitions": 16}, {"session_partitions": 2}, {"agent_partitions": 1}], ids=str
)
def test_partitions_that_the_events_contradict_are_refused(tmp_path: Path, claims: dict[str, object]):
    true = {"agent_partitions": RECORDED.agents, "session_partitions": RECORDED.sessions}
    assert content(claiming(tmp_path / "true.nxb", TALK, **true)) == TALK
    with pytest.raises(LedgerDamaged, match="the manifest claims"):
        content(claiming(tmp_path / "forged.nxb", TALK, **true | claims))


def test_an_input_that_a_stranger_put_into_another_partition_contradicts_nothing(tmp_path: Path):
    true = {"agent_partitions": RECORDED.agents, "session_partitions": RECORDED.sessions}
    stray = msgspec.structs.replace(next(each for each in TALK if each.subject.endswith(".input.received")))
    stray = msgspec.structs.replace(stray, seq=len(TALK) + 1, subject="log.07.77.input.received")
    assert content(claiming(tmp_path / "a.nxb", [*TALK, stray], **true)) == [*TALK, stray]
