"""The faults that can be planted in a simulated world, for the regulator's control loop to find and correct."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from schemas.vocabulary.regulator import PressureName


class WrongAdjustment(msgspec.Struct, frozen=True, kw_only=True):
    """An adjustment of a router weight on a day, with the wrong sign: it raises the metric that it should lower.

    ``parameter`` is the weight, ``delta`` what is added to it. ``pressure`` names the fault of the routing that it is
    said to correct, and whose metric it raises.
    """

    day: int
    parameter: str
    delta: float
    pressure: PressureName


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True):
    """Router weights that misroute from ``day`` on, or a wrong adjustment; ``meaning`` says it in words."""

    meaning: str
    day: int = 0
    weights: dict[str, float] = msgspec.field(default_factory=dict)
    wrong: WrongAdjustment | None = None

    @property
    def planted_on(self) -> int | None:
        """The day, from 0, on which the fault begins; None if there is no fault."""
        if self.wrong is not None:
            return self.wrong.day
        return self.day if self.weights else None


PLANTS: Mapping[str, PlantedFault] = MappingProxyType(
    {
        "none": PlantedFault(meaning="nothing is wrong"),
        "misrouting": PlantedFault(
            meaning="someone sets RESPOND.base to .66: what calls for a question back is answered at length",
            day=8,
            weights={"RESPOND.base": 0.66},
        ),
        "over-questioning": PlantedFault(
            meaning="someone sets CLARIFY.base to .50, RESPOND.base to .30: what could be answered is asked back",
            day=8,
            weights={
                "CLARIFY.base": 0.50,
                "clarify.warm_penalty": 0.05,
                "RESPOND.base": 0.30,
                "respond.warmth_boost": 0.05,
            },
        ),
        "under-acknowledging": PlantedFault(
            meaning="someone sets the weights of greetings and thanks low: they are answered as requests are",
            day=8,
            weights={"acknowledge.greeting": 0.34, "acknowledge.positive_feedback": 0.20},
        ),
        "bad-adjustment": PlantedFault(
            meaning="an adjustment with the wrong sign: questions about shared history are looked up less often",
            wrong=WrongAdjustment(day=8, parameter="act.question_moderate_context", delta=-0.02, pressure="missed_act"),
        ),
    }
)
"""Name, as ``--plant`` takes it -> the fault."""
