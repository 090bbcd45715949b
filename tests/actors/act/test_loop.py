"""The loop end to end, planned by rule: what it asks, what it gathers, and how it ends."""

import msgspec

from actors.act.settings import ActSettings
from actors.contract.text.shortening import shorten
from schemas.vocabulary.act import ActActionsRequested, ActFinished, ActIterated
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import ActionResult, MemoryActionsAnswered
from tests.actors.act.builders import E1, MODERATE, QUESTION, Acting, found, recollection
from tests.actors.router.builders import recalled
from tests.actors.scenario import Address
from tests.each import each

LEASE = recollection("gist:1", 0.5)
OFFICE = recollection("concept:2", 0.9, "office")


def test_an_exchange_routed_to_act_is_routed_again_once_its_loop_is_over():
    """mode-router: ACT Loop, step 6 after the loop -> re-route excluding ACT."""
    acting = Acting()
    acting.ask()
    acting.remember(found(0, LEASE))
    acting.remember(found(0, OFFICE, skill="associate"))
    assert acting.modes == [("ACT", None, False), ("RESPOND", "RESPOND", True)]


def test_by_rule_it_recalls_the_question_then_associates_on_what_was_found_then_stops():
    acting = Acting()
    acting.ask()
    acting.remember(found(0, LEASE))
    acting.remember(found(0, OFFICE, skill="associate"))
    actions = [(each.iteration, each.actions) for each in acting.said(ActActionsRequested)]
    assert [(iteration, [(action.skill, action.query) for action in planned]) for iteration, planned in actions] == [
        (0, [("recall", QUESTION)]),
        (1, [("associate", LEASE.text)]),
    ]
    assert (acting.finish.termination, acting.finish.iterations) == ("plan_empty", 2)


def test_where_nothing_was_found_there_is_nothing_to_associate_on():
    acting = Acting()
    acting.ask()
    acting.remember(found(0))
    assert (acting.finish.termination, acting.finish.iterations, acting.finish.productive) == ("plan_empty", 1, False)
    assert [(each.productive, each.reason) for each in acting.iterations] == [(False, "nothing_found")]


def test_every_iteration_is_recorded_with_what_it_performed():
    """mode-router: ACT Loop Iteration Logging."""
    acting = Acting()
    acting.ask()
    acting.remember(found(0, LEASE, OFFICE), after_ms=20)
    first = acting.iterations[0]
    assert (first.iteration, first.planner, first.productive, first.reason) == (0, "offline", True, "")
    assert first.elapsed_ms == 20
    assert [(each.action.skill, each.ok, each.found) for each in first.performed] == [("recall", True, 2)]


def test_findings_are_the_strongest_first_and_each_once():
    acting = Acting()
    acting.ask()
    acting.remember(found(0, LEASE))
    acting.remember(found(0, OFFICE, msgspec.structs.replace(LEASE, energy=0.7), skill="associate"))
    assert [(each.id, each.energy) for each in acting.finish.findings] == [("concept:2", 0.9), ("gist:1", 0.7)]
    assert acting.finish.productive


def test_findings_are_bounded():
    acting = Acting(ActSettings(most_findings=3))
    acting.ask()
    acting.remember(found(0, *(recollection(f"gist:{index}", index / 10) for index in range(9))))
    acting.remember(found(0, skill="associate"))
    assert [each.id for each in acting.finish.findings] == ["gist:8", "gist:7", "gist:6"]


def test_an_action_that_failed_fails_alone():
    acting = Acting()
    acting.ask()
    acting.remember(ActionResult(index=0, skill="recall", ok=False, reason="index_unready"))
    (performed,) = acting.iterations[0].performed
    assert (performed.ok, performed.reason, performed.found) == (False, "index_unready", 0)
    assert acting.finish.termination == "plan_empty"


def test_an_action_passed_over_in_the_answer_failed():
    acting = Acting()
    acting.ask()
    acting.remember()
    assert acting.iterations[0].performed[0].reason == "unanswered"


def test_it_stops_at_the_most_iterations():
    """mode-router: Termination Reasons, max_iterations."""
    acting = Acting(ActSettings(max_iterations=1))
    acting.ask()
    acting.remember(found(0, LEASE))
    assert (acting.finish.termination, acting.finish.iterations) == ("max_iterations", 1)


def test_it_stops_when_its_time_is_used_up():
    """mode-router: Termination Reasons, timeout."""
    acting = Acting(ActSettings(timeout_ms=400))
    acting.ask()
    acting.remember(found(0, LEASE), after_ms=300)
    acting.remember(found(0, OFFICE, skill="associate"), after_ms=99)
    assert acting.finish.termination == "plan_empty"
    late = Acting(ActSettings(timeout_ms=400, recall_ms=10_000))
    late.ask()
    late.remember(found(0, LEASE), after_ms=400)
    assert (late.finish.termination, late.finish.elapsed_ms) == ("timeout", 400)


def test_it_leaves_time_for_the_answer():
    acting = Acting(ActSettings(planner="llm", plan_timeout_ms=60_000, deadline_share=0.5))
    acting.pipeline.ask(QUESTION, E1)
    acting.pipeline.advance(100)
    acting.pipeline.send(
        ArbiterEscalated(reason="no_precedent", nearest="", similarity=0.0, deadline_after_ms=5_000), E1
    )
    acting.pipeline.advance(1_000)
    acting.pipeline.send(recalled(MODERATE), E1)
    acting.pipeline.advance(4_000)
    assert (acting.finish.termination, acting.finish.elapsed_ms) == ("timeout", 2_000)
    assert acting.modes[-1] == ("RESPOND", "RESPOND", True)


def test_by_default_it_has_five_iterations_and_a_minute():
    """mode-router: Continuation Check, 60s and 5 iterations by default."""
    assert (ActSettings().max_iterations, ActSettings().timeout_ms) == (5, 60_000)


def test_after_an_unproductive_loop_the_next_request_shuns_act():
    """mode-router: Anti-Oscillation Guards, previous ACT unproductive, from loop to score."""
    acting = Acting()
    acting.ask()
    acting.remember(found(0))
    acting.end()
    acting.ask(Address(exchange="e2"))
    first = acting.selections(E1)[0].scores["ACT"]
    second = acting.selections(Address(exchange="e2"))[0].scores["ACT"]
    assert round(second - first, 6) == -0.15


def test_the_end_of_the_exchange_drops_the_loop():
    acting = Acting()
    acting.ask()
    acting.end()
    assert (len(acting.state.pending), len(acting.state.acting)) == (0, 0)
    acting.remember(found(0, LEASE))
    acting.pipeline.advance(120_000)
    assert acting.said(ActIterated) == acting.said(ActFinished) == []


def test_an_exchange_that_is_not_routed_to_act_leaves_nothing():
    acting = Acting()
    acting.ask(text="Hey")
    assert (len(acting.state.pending), acting.said(ActActionsRequested)) == (0, [])


def test_nothing_is_pending_after_the_loop():
    acting = Acting()
    acting.ask()
    acting.remember(found(0))
    assert (len(acting.state.pending), len(acting.state.acting)) == (0, 0)
    acting.end()
    assert all(len(each.state.pending) == 0 for each in acting.pipeline.partitions.values())


def test_a_repeated_input_after_the_end_leaves_nothing_pending():
    acting = Acting()
    acting.ask(text="Hey")
    acting.end()
    acting.pipeline.send(InputReceived(text="Hey"), E1)
    assert len(acting.state.pending) == 0


def test_a_repeated_selection_starts_no_second_loop():
    acting = Acting()
    acting.ask()
    (selected,) = acting.selections(E1)
    acting.pipeline.send(selected, E1)
    assert len(acting.said(ActActionsRequested)) == 1


def test_an_answer_to_another_request_is_passed_over():
    acting = Acting()
    acting.ask()
    acting.pipeline.send(MemoryActionsAnswered(request="another", iteration=0, results=(found(0, LEASE),)), E1)
    assert acting.iterations == []


def test_an_answer_given_twice_counts_once():
    acting = Acting()
    acting.ask()
    request = acting.messages(ActActionsRequested)[0].id
    answer = MemoryActionsAnswered(request=request, iteration=0, results=(found(0, LEASE),))
    for _ in range(2):
        acting.pipeline.send(answer, E1)
    assert len(acting.iterations) == 1


@each("text", [QUESTION, "What did we discuss? " * 500])
def test_a_question_is_recalled_in_bounded_length(text: str):
    acting = Acting()
    acting.ask(text=text)
    (requested,) = acting.said(ActActionsRequested)
    assert requested.actions[0].query == shorten(text.strip(), 1_000, len).text
    assert len(requested.actions[0].query) <= 1_000


def test_two_exchanges_of_a_session_act_side_by_side():
    acting, other = Acting(), Address(exchange="e2")
    acting.ask()
    acting.ask(other)
    acting.remember(found(0))
    assert (len(acting.said(ActFinished)), len(acting.said(ActFinished, other))) == (1, 0)
    acting.remember(found(0), address=other)
    assert len(acting.said(ActFinished, other)) == 1


def test_a_loop_that_ended_in_time_costs_no_timer_event():
    acting = Acting()
    acting.ask()
    acting.remember(found(0))
    acting.end()
    acting.pipeline.advance(120_000)
    assert [each for each in acting.pipeline.stream if isinstance(each.event, ClockFired)] == []


def test_the_same_conversation_yields_the_same_events():
    def run() -> list[object]:
        acting = Acting()
        acting.ask()
        acting.remember(found(0, LEASE))
        acting.remember(found(0, OFFICE, skill="associate"))
        return [(each.id, each.event) for each in acting.pipeline.stream]

    assert run() == run()


def test_memory_that_recalls_again_starts_nothing():
    acting = Acting()
    acting.ask()
    acting.pipeline.send(recalled(MODERATE), E1)
    assert len(acting.said(ActActionsRequested)) == 1
