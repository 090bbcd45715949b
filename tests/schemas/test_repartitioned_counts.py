"""Partitions that were divided: names of their own, one place for each key, and counts that only grow."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.subjects import FormerCounts, Partitions, former_text, is_repartitioned, read_former, split_token

ONCE = Partitions(8, 32, (FormerCounts(100, 4, 16),))
TWICE = Partitions(16, 96, (*ONCE.former, FormerCounts(200, 8, 32)))
KEYS = st.text(min_size=1, max_size=20)


def test_a_token_tells_the_generation_of_its_counts() -> None:
    assert Partitions().session_token("ada") in Partitions().tokens(of_sessions=True)
    assert ONCE.session_token("ada").startswith("1-")
    assert split_token(TWICE.agent_token("ada"))[0] == 2
    assert ONCE.session_token("") == "_"


@given(KEYS)
def test_a_key_stays_within_the_partition_that_its_own_was_divided_from(key: str) -> None:
    for counts in (ONCE, TWICE):
        tokens = counts.session_tokens(key)
        assert counts.lineage(tokens[-1], of_sessions=True) == tokens
        for token in tokens:
            assert tokens[-1] in counts.in_force(token, of_sessions=True)
            assert counts.resolve(token, key, of_sessions=True) == tokens[-1]


def test_every_partition_is_divided_into_others_without_a_rest() -> None:
    parts = [part for token in Partitions().tokens(True) for part in ONCE.in_force(token, of_sessions=True)]
    assert sorted(parts) == list(ONCE.tokens(True))
    assert {ONCE.generations[0][1].in_force(part, True)[0] for part in parts} == set(Partitions().tokens(True))


def test_a_message_that_lies_elsewhere_than_its_key_says_has_one_place_too() -> None:
    token = next(token for token in Partitions().tokens(True) if token != Partitions().session_token("ada"))
    assert ONCE.resolve(token, "ada", of_sessions=True) == f"1-{token}"
    assert ONCE.resolve(token, "", of_sessions=True) == f"1-{token}"
    assert ONCE.resolve("_", "ada", of_sessions=True) == "_"
    for strange in ("weird", "1-", "-1", "99", "7-01"):
        assert ONCE.resolve(strange, "ada", of_sessions=True)
        for counts in (Partitions(), ONCE, TWICE):
            assert counts.lineage(strange, of_sessions=True)[-1] == strange
            assert counts.lineage(strange, of_sessions=False)[-1] == strange


def test_counts_from_a_file_that_are_none_are_told() -> None:
    assert (ONCE.fault, TWICE.fault) == ("", "")
    for wrong, why in (
        (Partitions(8, 24, ONCE.former), "no multiples"),
        (Partitions(2, 32, ONCE.former), "no multiples"),
        (Partitions(0, 16), "not from 1"),
        (Partitions(8, 32, (FormerCounts(-1, 4, 16),)), "not in order"),
        (Partitions(16, 96, TWICE.former[::-1]), "not in order"),
    ):
        assert why in wrong.fault


def test_former_counts_are_written_and_read_and_a_log_knows_its_own_past() -> None:
    assert read_former(former_text(TWICE.former)) == TWICE.former
    assert read_former("") == ()
    assert is_repartitioned(Partitions(), TWICE)
    assert is_repartitioned(ONCE, TWICE)
    assert not is_repartitioned(TWICE, ONCE)
    assert not is_repartitioned(Partitions(4, 8), ONCE)
    assert not is_repartitioned(ONCE, ONCE)
