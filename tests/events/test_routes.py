"""Filters cover exactly what an actor consumes and owns, each message once, and each lands in the right partitions."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from itertools import combinations, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.registry import ACTORS
from events.routes import (
    consumed_filters,
    fence_filter,
    main_prefix,
    own_filters,
    partition_filters,
    partition_names,
    partitions_of,
    without_overlap,
)
from schemas.actor import Actor, Scope
from schemas.catalogue import CATALOGUE, owned_by
from schemas.event import topic_of
from schemas.subjects import NO_PARTITION, Partitions, split_stored, stored_subject
from tests.each import each
from tests.events.small_actors import DIARIST
from tests.simulated.store import matches, overlap

every_actor = each("actor", ACTORS.values(), named=lambda actor: actor.name)
every_scope = each("scope", Scope)
PARTITIONS = Partitions(agents=3, sessions=5)

brief = settings(max_examples=50)
tokens = st.tuples(
    st.sampled_from([NO_PARTITION, *(f"{number:02d}" for number in range(PARTITIONS.agents))]),
    st.sampled_from([NO_PARTITION, *(f"{number:02d}" for number in range(PARTITIONS.sessions))]),
)
foreign = st.lists(st.sampled_from(["reflex", "input", "clock", "received", "passed", "x"]), min_size=1, max_size=4)
topics = st.sampled_from(sorted(CATALOGUE)) | foreign.map(lambda words: ".".join(["forged_id", *words]))
subjects = st.builds(lambda topic, both: stored_subject(topic, *both), topics, tokens)


def with_scope(actor: Actor[Any], scope: Scope) -> Actor[Any]:
    return dataclasses.replace(actor, scope=scope)


def heard(actor: Actor[Any], subject: str) -> bool:
    """Whether a stored subject carries something that an actor consumes or owns: all below its prefixes is its own."""
    topic, _, _ = split_stored(subject)
    consumed = {topic_of(event) for event in actor.consumes}
    own = {entry.topic for entry in owned_by(actor.name)}
    below = {entry.prefix for entry in owned_by(actor.name)}
    words = topic.split(".")
    return topic in consumed | own or (words[1] in below and len(words) > 2)


@cache
def filters_of(name: str, scope: Scope) -> Mapping[str, tuple[str, ...]]:
    """Return what each partition of an actor reads, if the actor has a scope."""
    actor = with_scope(ACTORS[name], scope)
    return {each: tuple(partition_filters(actor, each, PARTITIONS)) for each in partition_names(actor, PARTITIONS)}


@given(subject=subjects)
def test_each_partition_reads_what_belongs_to_it_and_nothing_else(subject: str) -> None:
    for name, scope in product(ACTORS, Scope):
        actor = with_scope(ACTORS[name], scope)
        belongs = partitions_of(actor, subject, PARTITIONS) if heard(actor, subject) else ()
        for partition, filters in filters_of(name, scope).items():
            hits = [one for one in filters if matches(one, subject)]
            assert len(hits) == (partition in belongs), f"{subject} in {partition} of {name} by {scope}: {hits}"


@given(subject=subjects)
def test_a_process_reads_each_message_of_its_actors_once(subject: str) -> None:
    for name, actor in ACTORS.items():
        hits = [one for one in all_filters_of(name) if matches(one, subject)]
        assert len(hits) == heard(actor, subject), f"{subject} for {name}: {hits}"


@cache
def all_filters_of(name: str) -> tuple[str, ...]:
    return tuple(without_overlap([*consumed_filters(ACTORS[name]), *own_filters(ACTORS[name])]))


@brief
@given(subject=subjects)
def test_one_reading_for_all_actors_hands_out_each_message_once(subject: str) -> None:
    together = without_overlap(
        one for actor in ACTORS.values() for one in (*consumed_filters(actor), *own_filters(actor))
    )
    assert sum(matches(one, subject) for one in together) == any(heard(actor, subject) for actor in ACTORS.values())


@every_actor
@every_scope
def test_no_two_filters_of_a_partition_overlap(actor: Actor[Any], scope: Scope) -> None:
    actor = with_scope(actor, scope)
    for partition in partition_names(actor, PARTITIONS):
        filters = partition_filters(actor, partition, PARTITIONS)
        assert filters
        assert not [pair for pair in combinations(filters, 2) if overlap(*pair)]


@every_scope
@brief
@given(subject=subjects)
def test_a_fence_covers_what_the_owner_of_a_partition_writes_there_and_no_other_partition(
    scope: Scope, subject: str
) -> None:
    actor = with_scope(DIARIST, scope)
    _, agent, session = split_stored(subject)
    own = subject.split(".", 3)[3].startswith(f"{main_prefix(actor)}.")
    token = {Scope.SESSION: session, Scope.AGENT: agent, Scope.GLOBAL: "all"}[scope]
    fenced = [name for name in partition_names(actor, PARTITIONS) if matches(fence_filter(actor, name), subject)]
    assert fenced == ([token] if own and token != NO_PARTITION else [])


def test_partitions_are_named_by_their_tokens() -> None:
    assert partition_names(with_scope(DIARIST, Scope.SESSION), PARTITIONS) == ("00", "01", "02", "03", "04")
    assert partition_names(with_scope(DIARIST, Scope.AGENT), PARTITIONS) == ("00", "01", "02")
    assert partition_names(with_scope(DIARIST, Scope.GLOBAL), PARTITIONS) == ("all",)


@each(
    ("scope", "subject", "expected"),
    [
        (Scope.SESSION, "log.02.04.input.received", ("04",)),
        (Scope.SESSION, "log.02._.regulator.adjusted", ("00", "01", "02", "03", "04")),
        (Scope.SESSION, "log._._.clock.configured", ("00", "01", "02", "03", "04")),
        (Scope.AGENT, "log.02.04.input.received", ("02",)),
        (Scope.AGENT, "log.02._.regulator.adjusted", ("02",)),
        (Scope.AGENT, "log._._.clock.configured", ("00", "01", "02")),
        (Scope.GLOBAL, "log.02.04.input.received", ("all",)),
        (Scope.GLOBAL, "log._._.clock.configured", ("all",)),
    ],
)
def test_a_message_without_an_actors_key_belongs_to_all_of_its_partitions(
    scope: Scope, subject: str, expected: tuple[str, ...]
) -> None:
    assert partitions_of(with_scope(DIARIST, scope), subject, PARTITIONS) == expected


@brief
@given(agent=st.text(max_size=8), session=st.text(max_size=8))
def test_a_messages_keys_lead_to_one_partition_of_each_kind(agent: str, session: str) -> None:
    subject = stored_subject("forged_id.x.y", PARTITIONS.agent_token(agent), PARTITIONS.session_token(session))
    for scope, key in ((Scope.SESSION, session), (Scope.AGENT, agent)):
        found = partitions_of(with_scope(DIARIST, scope), subject, PARTITIONS)
        assert len(found) == (1 if key else len(partition_names(with_scope(DIARIST, scope), PARTITIONS)))


words = st.sampled_from(["a", "b", "*"])
filters = st.builds(
    lambda before, rest: ".".join([*before, *rest]),
    st.lists(words, min_size=1, max_size=3),
    st.sampled_from([[], [">"]]),
)


@brief
@given(st.lists(filters, max_size=6))
def test_dropping_what_is_covered_drops_no_message(candidates: list[str]) -> None:
    kept = without_overlap(candidates)
    assert set(kept) <= set(candidates)
    assert len(set(kept)) == len(kept)
    for dropped in set(candidates) - set(kept):
        assert any(one.endswith(".>") and dropped.startswith(one[:-1]) for one in kept)
