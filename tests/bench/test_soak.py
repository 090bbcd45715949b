"""The soak: a set under load for two short minutes, and what its rows say of growth."""

import asyncio

import pytest

from bench.system.soak import growth_per_hour, latency_ratio, measure


def test_growth_is_the_slope_of_the_last_half_an_hour() -> None:
    warming_up = [{"deciders": megabytes, "ledger": 90.0} for megabytes in (100.0, 140.0, 160.0)]
    settled = [{"deciders": 160.0 + minute, "ledger": 90.0} for minute in range(4)]
    assert growth_per_hour(warming_up + settled) == {"deciders": 60.0, "ledger": 0.0}
    assert growth_per_hour(settled[:1]) == {}


def test_latency_is_compared_between_the_first_and_the_last_third() -> None:
    assert latency_ratio([10.0, 10.0, 90.0, 50.0, 20.0, 20.0]) == 2.0
    assert latency_ratio([10.0]) == 1.0


def test_a_set_is_soaked_at_a_share_of_its_highest_rate() -> None:
    soaked = asyncio.run(measure(2, 0.2, minute_s=2.0, measured_s=1.0, warm_up_s=1.0))
    assert soaked.rate_per_s == pytest.approx(soaked.highest_per_s * 0.2, abs=0.1)
    assert [row.minute for row in soaked.minutes] == [1, 2]
    for row in soaked.minutes:
        assert row.answered > 0 == row.refused
        assert row.lag >= 0
        assert {"up", "broker", "deciders", "ledger", "gateway"} <= set(row.resident_mb)
        assert min(row.resident_mb.values()) > 10
        assert row.stored_mb > 1
