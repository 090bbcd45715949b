"""An operator changes settings under the regulator's hands: its word and what the routers do stay one and the same."""

from collections.abc import Mapping

from actors.regulator.settings import RegulatorSettings
from actors.router.settings import RouterSettings
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.regulator import Adjusted, CycleCompleted, Reverted
from schemas.vocabulary.router import Mode, ModeSelected
from tests.actors.regulator.builders import HEALTHY, READING_WEIGHTS, WEIGHTS, Regulated, only
from tests.actors.router.builders import partition as router_partition
from tests.actors.router.builders import recalled
from tests.actors.scenario import Address

NEVER_ACTING: Mapping[Mode, int] = {"RESPOND": 70, "CLARIFY": 20, "ACKNOWLEDGE": 10}
RARELY_ACTING: Mapping[Mode, int] = {"RESPOND": 69, "CLARIFY": 20, "ACKNOWLEDGE": 10, "ACT": 1}
OFTEN_RESPONDING: Mapping[Mode, int] = {"RESPOND": 90, "CLARIFY": 5, "ACT": 5}
ALWAYS_ACTING: Mapping[Mode, int] = {"ACT": 100}


class Together:
    """An agent under the regulator and a router that hears it, in days of virtual time."""

    def __init__(self) -> None:
        self.agent = Regulated(RegulatorSettings(series_steps=1))
        self.router = router_partition()

    def set(self, **weights: float) -> None:
        """Let an operator set weights; ``ACT`` stands for ``ACT.base``."""
        self.router.configure(RouterSettings(weights={f"{mode}.base": weight for mode, weight in weights.items()}))

    def weight(self, name: str = "ACT.base") -> float:
        """Return a weight that the router's next decision is made with."""
        return self._in_force()[name]

    def day(self, modes: Mapping[Mode, int]) -> list[Event]:
        """Let a day pass, its decisions made with the weights in force; the router hears what its cycle came to."""
        record_offsets, in_force = self.agent.record.offsets, self._in_force()
        shown = {name: weight - record_offsets.get(name, 0.0) for name, weight in in_force.items()}
        led_to = self.agent.day(modes, weights=shown)
        for event in led_to:
            if isinstance(event, Adjusted | Reverted):
                self.router.hear(event)
        return led_to

    def weights(self) -> Mapping[str, float]:
        """Return those that the router's next decision is made with."""
        return self._in_force()

    def _in_force(self) -> dict[str, float]:
        here = Address(exchange=f"asked after {self.router.seq}")
        self.router.hear(InputReceived(text="What is the capital of Peru?"), here)
        [selected] = self.router.when(recalled(), here)
        assert isinstance(selected, ModeSelected)
        return selected.weights


def raised_twice() -> Together:
    """Return an agent whose ``ACT.base`` regulation has led from .20 to .24: half is confirmed, half on trial."""
    together = Together()
    only(Adjusted, together.day(NEVER_ACTING))
    together.day(RARELY_ACTING)
    only(Adjusted, together.day(RARELY_ACTING))
    assert together.weight() == 0.24
    return together


def test_what_is_adjusted_moves_though_a_setting_had_put_its_offset_beyond_the_bound() -> None:
    together = raised_twice()
    together.set(ACT=0.39)
    assert together.weight() == 0.4  # the bound, where .43 would be
    together.day(HEALTHY)
    only(CycleCompleted, together.day(HEALTHY))
    adjusted = only(Adjusted, together.day(ALWAYS_ACTING))
    assert (adjusted.before, adjusted.after) == (0.4, 0.38)
    assert together.weight() == adjusted.after


def test_what_is_undone_moves_though_a_setting_had_put_its_offset_beyond_the_bound() -> None:
    together = raised_twice()
    together.set(ACT=0.39)
    together.day(NEVER_ACTING)
    reverted = only(Reverted, together.day(NEVER_ACTING))
    assert (reverted.before, reverted.after) == (0.4, 0.38)
    assert together.weight() == reverted.after


def test_a_setting_that_is_taken_back_before_the_next_change_leaves_the_offset_as_it_was() -> None:
    together = raised_twice()
    together.set(ACT=0.39)
    together.set(ACT=0.2)
    assert together.weight() == 0.24


def test_what_failed_on_a_weight_that_was_set_beyond_its_bounds_is_undone_once_it_is_back() -> None:
    together = raised_twice()
    together.set(ACT=0.5)
    for _ in range(3):
        assert Reverted not in map(type, together.day(NEVER_ACTING))
        assert together.weight() == 0.5
    together.set(ACT=0.2)
    reverted = only(Reverted, together.day(NEVER_ACTING))
    assert (reverted.before, reverted.after) == (0.24, 0.22)
    assert together.weight() == reverted.after


def test_while_one_undoing_waits_other_weights_are_still_corrected() -> None:
    together = raised_twice()
    together.set(ACT=0.5)
    together.day(NEVER_ACTING)
    moved = only(Adjusted, together.day({"RESPOND": 100}))
    assert moved.parameter == "RESPOND.base"
    assert together.weight("RESPOND.base") == moved.after


def test_an_undoing_passes_no_bound_that_a_setting_has_brought_near() -> None:
    together = Together()
    lowered = only(Adjusted, together.day(OFTEN_RESPONDING))
    assert lowered.delta == -0.02
    together.set(RESPOND=0.71)
    assert together.weight("RESPOND.base") == 0.69
    together.day(OFTEN_RESPONDING)
    reverted = only(Reverted, together.day(OFTEN_RESPONDING))
    assert (reverted.before, reverted.after, reverted.delta) == (0.69, 0.7, 0.01)
    assert together.weight("RESPOND.base") == reverted.after


def test_a_router_whose_profile_lacks_a_corrected_weight_decides_with_those_it_has():
    together = Together()
    adjusted = Adjusted(
        parameter="clarify.underspecified", before=1.0, after=1.02, delta=0.02, requested=0.02, offset=0.02,
        pressure="clarify_under_use", metric_before=1.0,
    )  # fmt: skip
    together.router.configure(RouterSettings(profile="standard"))
    together.router.hear(adjusted)
    assert together.weight("clarify.underspecified") == 1.02
    together.router.configure(RouterSettings(profile="calibrated"))
    assert "clarify.underspecified" not in together.weights()
    together.router.configure(RouterSettings(profile="standard"))
    assert together.weight("clarify.underspecified") == 1.02, "it waited"


def test_what_is_on_trial_of_a_weight_that_the_profile_lacks_is_not_undone_before_it_is_back():
    agent = Regulated(RegulatorSettings(series_steps=1))
    missing: Mapping[Mode, int] = {"RESPOND": 75, "ACT": 12, "ACKNOWLEDGE": 11, "CLARIFY": 2}
    adjusted = only(Adjusted, agent.day(missing, feedbacks=["missed_clarify"], weights=READING_WEIGHTS))
    assert adjusted.parameter == "clarify.underspecified"
    for _ in range(4):
        agent.day(missing, feedbacks=["missed_clarify"], weights=WEIGHTS)
    assert reverts_of(agent, adjusted.parameter) == []
    for _ in range(2):
        agent.day(missing, feedbacks=["missed_clarify"], weights=READING_WEIGHTS)
    [reverted] = reverts_of(agent, adjusted.parameter)
    assert reverted.delta == -adjusted.delta


def reverts_of(agent: Regulated, parameter: str) -> list[Reverted]:
    return [event for _, event in agent.events if isinstance(event, Reverted) and event.parameter == parameter]
