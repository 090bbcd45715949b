"""What holds over months of any history: of any mix of modes, misroutes, opinions, pauses and settings by hand."""

from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.regulator.agent_record import limits
from actors.router.regulator_offsets import NO_OFFSETS, moved_offsets, regulated_weights
from actors.router.settings import RouterSettings, effective_weights
from schemas.vocabulary.regulator import BOUNDS, Adjusted, Confirmed, Reverted
from tests.actors.regulator.builders import DAY_MS, HOUR_MS, WEIGHTS, Regulated, concluded, span
from tests.actors.scenario import MS

several = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])

modes = st.fixed_dictionaries(
    {mode: st.integers(0, 12) for mode in ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE")}, optional={}
)
feedbacks = st.lists(
    st.sampled_from(["missed_clarify", "missed_act", "under_engagement", "correct_route"]), max_size=12
)
opinions = st.none() | st.builds(
    concluded,
    st.floats(0, 1),
    st.sampled_from(["memory_availability", "intent_clarity", "tone_ambiguity", "social_cue", None]),
    st.floats(0, 1),
)
waits = st.sampled_from([DAY_MS // 2, DAY_MS // 2, DAY_MS // 2 + 1, DAY_MS, 3 * DAY_MS, 9 * DAY_MS])
days = st.tuples(modes, st.integers(0, 40), feedbacks, opinions, waits)
histories = st.lists(days, min_size=20, max_size=90)
by_hand = st.dictionaries(st.sampled_from(sorted(BOUNDS)), st.sampled_from([0.08, 0.12, 0.301, 0.4, 0.695]), max_size=5)


class Taken(NamedTuple):
    """A change that a router took up, and the weight in force before and after it."""

    event: Adjusted | Reverted
    before: float
    after: float


def lived(history: list[Any], *bases: dict[str, float], taken: list[Taken] | None = None) -> Regulated:
    """Return an agent after a history whose router takes up what the regulator says, as routers do.

    Every three days an operator goes on to the next of the settings; ``taken`` is told each change that is taken up.
    """
    agent, offsets = Regulated(), NO_OFFSETS
    for day, (mix, ambiguous, kinds, opinion, wait_ms) in enumerate(history):
        base = bases[day // 3 % len(bases)]
        in_force = regulated_weights(base, offsets)
        assert_within_bounds(in_force, base)
        agent.partition.now_ns += DAY_MS // 2 * MS
        heard = len(agent.events)
        agent.decide(mix, ambiguous=ambiguous, feedbacks=kinds, weights=without_offsets(agent, in_force))
        if opinion is not None:
            told = span(agent.partition.now_ns, opinion.disagreement, opinion.dominant or "social_cue")
            agent.hear(msgspec.structs.replace(opinion, spans=(told,)))
        if agent.record.scheduled:
            agent.cycle(after_ms=wait_ms)
        for _, event in agent.events[heard:]:
            if isinstance(event, Adjusted | Reverted):
                before = regulated_weights(base, offsets)[event.parameter]
                offsets = moved_offsets(offsets, event.parameter, event.delta, base)
                if taken is not None:
                    taken.append(Taken(event, before, regulated_weights(base, offsets)[event.parameter]))
    return agent


def without_offsets(agent: Regulated, in_force: dict[str, float]) -> dict[str, float]:
    """Return what ``Regulated.decide`` adds the offsets to, so that the decision shows the weights in force."""
    return {name: weight - agent.record.offsets.get(name, 0.0) for name, weight in in_force.items()}


def assert_within_bounds(in_force: dict[str, float], base: dict[str, float]) -> None:
    for name in BOUNDS.keys() & base.keys():
        least, most = limits(name, base)
        assert min(least, base[name]) <= in_force[name] <= max(most, base[name])


def base_of(overrides: dict[str, float]) -> dict[str, float]:
    return effective_weights(RouterSettings(weights=overrides))


def decided_daily(history: list[Any]) -> list[Any]:
    """Return a history without days of no decision: what a setting has changed shows in the next one."""
    return [({**mix, "RESPOND": mix["RESPOND"] + 1}, *rest) for mix, *rest in history]


def changes(agent: Regulated) -> list[tuple[int, Adjusted | Reverted]]:
    return [(at_ns, event) for at_ns, event in agent.events if isinstance(event, Adjusted | Reverted)]


def no_day_sees_more_than_two_hundredths_of_change(agent: Regulated, base: dict[str, float]) -> None:
    """mode-router: Routing Stability Regulator, 4 max 0.02 a day."""
    moved = changes(agent)
    for at_ns, _ in moved:
        of_the_day = [abs(each.delta) for other_ns, each in moved if 0 <= other_ns - at_ns < DAY_MS * MS]
        assert sum(of_the_day) <= 0.02 + 1e-9


def no_weight_changes_twice_within_two_days(agent: Regulated, base: dict[str, float]) -> None:
    """mode-router: Routing Stability Regulator, 4 48h cooldown per parameter."""
    times: dict[str, list[int]] = defaultdict(list)
    for at_ns, event in changes(agent):
        times[event.parameter].append(at_ns)
    for each in times.values():
        assert all(later - earlier >= 48 * HOUR_MS * MS for earlier, later in pairwise(each))


def no_adjustment_leads_out_of_the_bounds(agent: Regulated, base: dict[str, float]) -> None:
    """mode-router: Routing Stability Regulator, 4 hard bounds, whatever happened."""
    for _, event in changes(agent):
        least, most = limits(event.parameter, base)
        assert least <= event.after <= most
        assert event.after == round(event.before + event.delta, 6)


def a_revert_restores_exactly_what_was_before_the_adjustment(agent: Regulated, base: dict[str, float]) -> None:
    on_trial: dict[str, list[Adjusted]] = defaultdict(list)
    for _, event in agent.events:
        match event:
            case Adjusted():
                assert len(on_trial[event.parameter]) == event.step - 1
                on_trial[event.parameter].append(event)
            case Reverted():
                adjusted = on_trial[event.parameter].pop()
                assert (event.delta, event.after) == (-adjusted.delta, adjusted.before)
                assert event.offset == round(adjusted.offset - adjusted.delta, 6)
                assert event.steps_left == len(on_trial[event.parameter])
            case Confirmed():
                steps = on_trial.pop(event.parameter)
                assert event.offset == steps[-1].offset
                assert event.delta == round(sum(step.delta for step in steps), 6)


def what_is_remembered_of_an_agent_stays_small(agent: Regulated, base: dict[str, float]) -> None:
    assert len(agent.record.slices) <= 26
    assert len(agent.record.moves) <= 2
    assert len(agent.record.trials) <= len(BOUNDS)


@given(history=histories, overrides=by_hand)
@several
def test_in_every_history(history: list[Any], overrides: dict[str, float]):
    """To live through a history takes longer than any look at it."""
    base = base_of(overrides)
    agent = lived(history, base)
    no_day_sees_more_than_two_hundredths_of_change(agent, base)
    no_weight_changes_twice_within_two_days(agent, base)
    no_adjustment_leads_out_of_the_bounds(agent, base)
    a_revert_restores_exactly_what_was_before_the_adjustment(agent, base)
    what_is_remembered_of_an_agent_stays_small(agent, base)


@given(history=histories.map(decided_daily), overrides=st.lists(by_hand, min_size=2, max_size=4))
@several
def test_whatever_an_operator_sets_routers_do_what_the_regulator_says(
    history: list[Any], overrides: list[dict[str, float]]
):
    taken: list[Taken] = []
    lived(history, *map(base_of, overrides), taken=taken)
    for event, before, after in taken:
        assert (event.before, event.after) == (before, after)
        least, most = limits(event.parameter, WEIGHTS)
        assert least <= after <= most


@given(history=histories.map(decided_daily), overrides=by_hand, begins=st.booleans())
@several
def test_what_a_profile_does_not_have_is_left_alone_until_it_is_back(
    history: list[Any], overrides: dict[str, float], begins: bool
):
    profiles = [base_of(overrides), dict(WEIGHTS)]
    taken: list[Taken] = []
    agent = lived(history, *(profiles if begins else profiles[::-1]), taken=taken)
    for event, before, after in taken:
        assert (event.before, event.after) == (before, after)
        assert abs(event.delta) <= 0.02 + 1e-9
    assert all(abs(offset) <= BOUNDS[name][1] - BOUNDS[name][0] for name, offset in agent.record.offsets.items())
