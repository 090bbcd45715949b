"""The loop's lines in the worker's log."""

import msgspec

from actors.act.log_lines import log_lines
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.vocabulary.act import ActActionsRequested, ActFinished, Action


def sample(name: str) -> Event:
    return CATALOGUE[f"forged_id.act.{name}"].sample


def test_an_iteration_says_how_many_actions_it_executes():
    """mode-router: Log Prefixes, [MODE:ACT] [ACT LOOP] Iteration 0: executing 2 actions."""
    actions = tuple(Action(index=index, skill="recall", query="x") for index in range(2))
    assert log_lines(ActActionsRequested(iteration=0, actions=actions), 0.1) == (
        "[MODE:ACT] [ACT LOOP] Iteration 0: executing 2 actions",
    )
    assert log_lines(ActActionsRequested(iteration=3, actions=actions[:1]), 0.1) == (
        "[MODE:ACT] [ACT LOOP] Iteration 3: executing 1 action",
    )


def test_a_delegation_is_told_without_anybodys_words():
    assert log_lines(sample("delegation_requested"), 0.1) == ("[MODE:ACT] [ACT LOOP] Iteration 0: delegating 1 action",)


def test_the_end_says_why_and_what_was_found():
    finished = sample("finished")
    assert isinstance(finished, ActFinished)
    assert log_lines(finished, 0.1) == ("[MODE:ACT] [ACT LOOP] Finished after 1 iteration: plan_empty, 1 finding",)
    more = msgspec.structs.replace(finished, iterations=5, termination="max_iterations", findings=())
    assert log_lines(more, 0.1) == ("[MODE:ACT] [ACT LOOP] Finished after 5 iterations: max_iterations, 0 findings",)


def test_other_events_say_nothing():
    assert [log_lines(sample(name), 0.1) for name in ("plan_requested", "iterated", "timed_out", "configured")] == [
        ()
    ] * 4
