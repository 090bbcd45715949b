"""Whatever order events arrive in, an accepted input gets exactly one end, and nothing of it is left."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from actors.responder import ACTOR
from actors.responder.decider import ResponderState
from schemas.actor import Emission
from schemas.event import Event
from schemas.persistent import Map, decode_state, encode_state
from schemas.vocabulary.reflex import ReflexFailed
from schemas.vocabulary.responder import ResponderFailed
from schemas.vocabulary.router import RouterFailed
from tests.actors.responder.builders import (
    DISSONANT,
    OVERDUE,
    PATH,
    UNDELIBERATED,
    asked,
    blocked,
    chosen,
    denied,
    failure,
    immediate,
    recognised,
    terminated,
    tripped,
    withheld,
)
from tests.actors.scenario import Address, Partition

ENDINGS: dict[str, Event] = {
    "blocked": blocked(),
    "recognised": recognised(),
    "dissonant": DISSONANT,
    "tripped": tripped(),
    "withheld": withheld(),
    "terminated": terminated(),
    "denied": denied(),
    "immediate": immediate(),
    "respond": chosen("RESPOND"),
    "refer back": chosen("CLARIFY", implicit_reference=True),
    "acknowledge": chosen("ACKNOWLEDGE"),
    "ignore": chosen("IGNORE"),
    "reflex failed": failure(ReflexFailed),
    "router failed": failure(RouterFailed),
    "overdue": OVERDUE,
    "undeliberated": UNDELIBERATED,
}
"""Events that end an open exchange."""

WAITING = frozenset({"dissonant", "tripped", "withheld", "terminated"})
"""Those of them that may have to wait for an earlier stage."""

STEPS: dict[str, Event] = {**{type(event).__name__: event for event in PATH}, "act": chosen(None, first="ACT")}
"""Events that an exchange goes on from."""

WAITS_MS = st.integers(0, 2000)


class ExactlyOneEnd(RuleBasedStateMachine):
    """The responder under any interleaving of inputs, duplicates, verdicts, failures and deadlines.

    The waits of a whole run stay below the time for which ended exchanges are remembered.
    """

    addresses = Bundle("addresses")

    def __init__(self) -> None:
        super().__init__()
        self.responder = Partition(ACTOR)
        self.accepted: set[str] = set()
        self.ended: Counter[str] = Counter()
        self.held: set[str] = set()

    def deliver(self, event: Event, address: Address, wait_ms: int = 0) -> int:
        ends = self.responder.hear(event, address, after_ms=wait_ms)
        assert all(message.exchange == address.exchange for message in ends)
        self.ended.update(message.exchange for message in ends)
        return len(ends)

    @rule(target=addresses, session=st.sampled_from(["morning", "evening"]), text=st.text(max_size=40), wait=WAITS_MS)
    def an_input_comes(self, session: str, text: str, wait: int) -> Address:
        address = Address(session=session, exchange=f"exchange-{len(self.accepted)}")
        self.accepted.add(address.exchange)
        assert self.deliver(asked(text), address, wait) == 0
        return address

    @rule(address=addresses, wait=WAITS_MS)
    def an_input_comes_again(self, address: Address, wait: int) -> None:
        assert self.deliver(asked("again"), address, wait) == 0

    @rule(address=addresses, ending=st.sampled_from(sorted(ENDINGS)), wait=WAITS_MS)
    def an_ending_comes(self, address: Address, ending: str, wait: int) -> None:
        was_open = not self.ended[address.exchange]
        ends = self.deliver(ENDINGS[ending], address, wait)
        if ending in WAITING:
            self.held.add(address.exchange)
        # What is held gives way to nothing but the word of an earlier stage.
        assert ends <= int(was_open) if address.exchange in self.held else ends == int(was_open)

    @rule(address=addresses, step=st.sampled_from(sorted(STEPS)))
    def a_step_comes(self, address: Address, step: str) -> None:
        was_open = not self.ended[address.exchange]
        assert self.deliver(STEPS[step], address) <= int(was_open)

    @rule(ending=st.sampled_from(sorted(ENDINGS)), exchange=st.sampled_from(["", "never accepted"]))
    def an_ending_of_no_accepted_input_comes(self, ending: str, exchange: str) -> None:
        assert self.deliver(ENDINGS[ending], Address(exchange=exchange)) == 0

    @rule(address=addresses)
    def its_own_decision_fails(self, address: Address) -> None:
        failed = Emission(failure(ResponderFailed), address.agent, address.session, address.exchange)
        self.responder.fold(self.responder.own(failed))

    @rule()
    def it_is_restored_from_a_snapshot(self) -> None:
        self.responder.state = decode_state(encode_state(self.responder.state), ResponderState)

    @invariant()
    def no_exchange_has_ended_twice(self) -> None:
        assert all(count == 1 for count in self.ended.values())
        assert set(self.ended) <= self.accepted

    @invariant()
    def exactly_the_open_exchanges_are_kept(self) -> None:
        assert set(self.responder.state.pending) == self.accepted - set(self.ended)

    def teardown(self) -> None:
        for exchange in self.accepted:
            self.deliver(OVERDUE, Address(exchange=exchange))
        assert set(self.ended) == self.accepted
        self.no_exchange_has_ended_twice()
        assert self.responder.state.pending == Map()


ExactlyOneEnd.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestExactlyOneEnd = ExactlyOneEnd.TestCase
