import asyncio
from pathlib import Path

import nats
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.catalogue import CATALOGUE
from schemas.subjects import NO_PARTITION, Partitions, fnv1a_32, split_stored, stored_subject, topic_filter
from tests.broker import Broker
from tests.each import each

PUBLISHED_VECTORS = {  # draft-eastlake-fnv, appendix "Test Vectors", FNV-1a 32
    "": 0x811C9DC5,
    "a": 0xE40C292C,
    "b": 0xE70C2DE5,
    "foo": 0xA9F37ED7,
    "foobar": 0xBF9CF968,
    "chongo was here!\n": 0xD49930D5,
}
tokens = st.integers(0, 99).map(lambda number: f"{number:02d}") | st.just(NO_PARTITION)


@each(("key", "expected"), PUBLISHED_VECTORS.items())
def test_the_hash_is_fnv_1a(key: str, expected: int) -> None:
    assert fnv1a_32(key) == expected


@given(st.text(min_size=1), st.integers(1, 100), st.integers(1, 100))
def test_a_key_falls_into_one_of_the_partitions(key: str, agents: int, sessions: int) -> None:
    partitions = Partitions(agents, sessions)
    assert 0 <= int(partitions.agent_token(key)) < agents
    assert 0 <= int(partitions.session_token(key)) < sessions


def test_no_key_is_no_partition() -> None:
    assert Partitions().agent_token("") == NO_PARTITION == Partitions().session_token("")


@given(st.sampled_from(sorted(CATALOGUE)), tokens, tokens)
def test_a_stored_subject_splits_into_what_it_was_made_of(topic: str, agent: str, session: str) -> None:
    assert split_stored(stored_subject(topic, agent, session)) == (topic, agent, session)


@each("subject", ["forged_id.00.00.reflex.blocked", "log.00.00", "", "log", "xlog.00.00.a"])
def test_another_subject_is_refused(subject: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 the builtin's own message, or ours
        split_stored(subject)


def test_a_topic_s_filter_spans_all_partitions() -> None:
    assert topic_filter("forged_id.reflex.blocked") == "log.*.*.reflex.blocked"


def test_partitions_are_those_of_the_server_s_own_mapping(tmp_path: Path) -> None:
    keys = ["session-1", "s", "日本", "0b5e3c", "Zürich", *(f"agent-{number}" for number in range(40))]

    async def mapped(url: str) -> dict[str, str]:
        client = await nats.connect(url, allow_reconnect=False)
        subscription = await client.subscribe("partitioned.*")
        for key in keys:
            await client.publish(f"key.{key}", key.encode())
        messages = [await subscription.next_msg(timeout=10) for _ in keys]
        await client.close()
        return {message.data.decode(): message.subject.removeprefix("partitioned.") for message in messages}

    with Broker(tmp_path, more='mappings: { "key.*": "partitioned.{{partition(16,1)}}" }') as server:
        by_server = asyncio.run(mapped(server.url))
    assert {key: int(token) for key, token in by_server.items()} == {key: fnv1a_32(key) % 16 for key in keys}
