"""Open sessions: two sets with few and with more sessions, and what each more takes."""

import asyncio

from bench.system.sessions import measure


def test_what_a_session_takes_is_told_by_process() -> None:
    rows = asyncio.run(measure(40, return_s=0.5))
    settings = {(row.setting, row.case) for row in rows}
    assert {("20 sessions", "deciders"), ("40 sessions", "deciders"), ("each more", "all of them")} <= settings
    latency = [row for row in rows if row.setting.startswith("20/s")]
    assert [row.case for row in latency] == ["20 sessions", "40 sessions"] * 2
    assert all(row.value > 0 for row in latency)
    assert [list(row.ratios) for row in latency] == [[], ["20 sessions"]] * 2
