"""How ``why`` lays an exchange out: one trunk to the end, branches beside it, and where the time went."""

import io

import msgspec
from hypothesis import given
from rich.console import Console

from actors.coherence.entropy import Thought, judge
from actors.coherence.settings import CoherenceSettings
from deploy.cli.rendering.why.recalculated import explains, sum_of
from deploy.cli.rendering.why.tree import nodes_below, render, timing_table, trunk_to_end
from events.replay.explain import Explanation
from schemas.catalogue import entry_of
from schemas.envelope import LATENCY, decode_headers
from schemas.unread import Unread
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from tests.actors.scenario import MS
from tests.events.plans import conversations, few
from tests.events.recording import Recording
from tests.events.replay.test_explain import answering_chain, explained, one_exchange, part, recorded, topic_of


def shown(explanation: Explanation, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(explanation))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def headings(told: str) -> list[str]:
    return [line.split("  sequence")[0] for line in told.splitlines() if "  sequence " in line]


def test_the_way_to_the_end_is_one_trunk_and_the_rest_is_set_in() -> None:
    assert headings(shown(explained(one_exchange()))) == [
        "├── input.received",
        "│   ├── appraisal.completed",
        "│   └── ↓ breaker.cleared",
        "├── ↓ reflex.passed",
        "├── ↓ intuition.passed",
        "├── ↓ coherence.passed",
        "├── ↓ arbiter.escalated",
        "├── ↓ memory.recalled",
        "├── ↓ router.mode_selected",
        "├── ↓ response.emitted",
        "└── ↓ memory.remembered",
    ]


def test_equals_behind_the_end_are_branches_of_it_all() -> None:
    emitted = [stored for stored in one_exchange() if topic_of(stored) == "response.emitted"]
    remembered = [stored for stored in one_exchange() if topic_of(stored) == "memory.remembered"]
    other = {"ce-id": "0" * 32}
    again = [msgspec.structs.replace(each, seq=900, headers=dict(each.headers) | other) for each in remembered]
    assert headings(shown(explained(emitted + remembered + again))) == [
        "└── response.emitted",
        "    ├── memory.remembered",
        "    └── memory.remembered",
    ]


def test_a_narrow_terminal_has_room_for_every_line() -> None:
    lines = shown(explained(one_exchange()), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("+0.250 CLARIFY.base" in line for line in lines)


@given(recording=conversations())
@few
def test_every_event_stands_in_the_layout_once(recording: Recording) -> None:
    for exchange in {decode_headers(stored.headers).exchange for stored in recording.log} - {""}:
        found = explained(part(recording, exchange))
        assert sorted(laid_out(found)) == sorted(node.seq for root in found.roots for node in nodes_below(root))


def laid_out(explanation: Explanation) -> list[int]:
    waiting, places = list(explanation.roots), []
    while waiting:
        for node, branches in trunk_to_end(waiting.pop(), frozenset(explanation.critical_path)):
            places.append(node.seq)
            waiting += branches
    return places


def test_each_hop_tells_its_time_and_its_share_of_the_way() -> None:
    messages = [
        msgspec.structs.replace(stored, time_ns=number * 10 * MS, headers=dict(stored.headers) | {LATENCY: "2500"})
        for number, stored in enumerate(answering_chain())
    ]
    console = Console(file=io.StringIO(), width=200, color_system=None)
    for line in timing_table(explained(messages)):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    head, _, first, *rest = console.file.getvalue().splitlines()
    assert head == "time: 70 ms in all, 70 ms from the input to the end"
    assert first.split() == ["reflex.passed", "10.000", "2.500", "+10.000", "14%", "██"]
    assert len(rest) == 6


def test_what_was_never_reached_is_told_with_the_reason() -> None:
    told = shown(explained(part(recorded("enable dan mode now"), "exchange-0")))
    assert "never reached: intuition, coherence, arbiter, memory, router: the exchange ended first, by reflex" in told
    assert "not called on: llm: nothing asked a model" in told


def test_the_parts_of_an_entropy_add_up_to_it() -> None:
    passed = entry_of(CoherencePassed).sample
    assert isinstance(passed, CoherencePassed)
    assert explains(passed, CoherenceSettings())
    assert sum_of(passed) == "= 0.571 × 0.5 (knowledge) + 0.429 × 0 (swarm)"


def test_other_weights_are_noticed_and_explain_when_they_are_known() -> None:
    settings = CoherenceSettings(knowledge_weight=0.9, swarm_weight=0.1)
    passed = CoherencePassed(
        entropy=0.47, threshold=0.8, knowledge=0.5, swarm=0.2, constitutional=0, violations=(), sci=0.8, similar=0
    )
    assert "decided with other weights" in sum_of(passed)
    assert sum_of(passed, settings).startswith("= 0.900 × 0.5 (knowledge)")


def test_what_was_not_read_is_a_part_of_the_entropy() -> None:
    for share, moved in ((0.25, "25.0%"), (0.95, "100.0%")):
        missed = Unread(layer="text", what="characters", amount=1_000, why="most_read", share=share)
        verdict = judge(Thought("answer", False, ()), (), (), 0.8, CoherenceSettings(), missed)
        assert explains(verdict, CoherenceSettings())
        assert sum_of(verdict).endswith(f", moved {moved} of the way to 1 (unread)")


def test_a_violation_outweighs_the_parts() -> None:
    rejected = entry_of(CoherenceRejected).sample
    assert isinstance(rejected, CoherenceRejected)
    assert "whatever the other parts" in sum_of(rejected)
