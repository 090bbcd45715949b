"""Whatever order events arrive in, an accepted input gets exactly one end, and nothing of it is left."""

from collections import Counter

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from actors.responder import ACTOR
from actors.responder.decider import ResponderState
from actors.responder.settings import ResponderSettings
from schemas.actor import Emission
from schemas.catalogue import entry_of
from schemas.event import Event
from schemas.persistent import Map, decode_state, encode_state
from schemas.vocabulary.act import ActFailed
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryFailed
from schemas.vocabulary.reflex import ReflexFailed
from schemas.vocabulary.responder import ResponderFailed, ResponseEmitted, ResponseRequested
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
    finished,
    immediate,
    memory,
    recalled,
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
    "memory failed": failure(MemoryFailed),
    "router failed": failure(RouterFailed),
    "act failed": failure(ActFailed),
    "overdue": OVERDUE,
    "undeliberated": UNDELIBERATED,
}
"""Events that end an open exchange."""

BY_A_MODEL = frozenset({"respond", "refer back", "acknowledge"})
"""Those of them that a language model is asked to bring about, where one is attached."""

MODES = BY_A_MODEL | {"ignore"}

WAITING = frozenset({"dissonant", "tripped", "withheld", "terminated"})
"""Those of them that may have to wait for an earlier stage."""

STEPS: dict[str, Event] = {
    **{type(event).__name__: event for event in PATH},
    "recalled": recalled(memory("name: Ada", energy=0.8), memory("", energy=0.7, id="fact:2")),
    "act": chosen(None, first="ACT"),
    "act finished": finished(memory("Ada likes tea", energy=0.6, id="fact:3")),
}
"""Events that an exchange goes on from."""

COMPLETED, FAILED = entry_of(LlmCompleted).sample, entry_of(LlmFailed).sample
ANSWERS: dict[str, Event] = {
    "words": COMPLETED,
    "silence": msgspec.structs.replace(COMPLETED, text=" "),
    "failure": FAILED,
}
"""What a model's effector says of a request."""

WAITS_MS = st.integers(0, 2000)


class ExactlyOneEnd(RuleBasedStateMachine):
    """The responder under any interleaving of inputs, duplicates, verdicts, models' answers, failures and deadlines.

    The waits of a whole run stay below the time for which ended exchanges are remembered.
    """

    addresses = Bundle("addresses")

    def __init__(self) -> None:
        super().__init__()
        self.responder = Partition(ACTOR)
        self.accepted: set[str] = set()
        self.ended: Counter[str] = Counter()
        self.held: set[str] = set()

        self.asked: dict[str, str] = {}

    @initialize(backend=st.sampled_from(["composer", "llm"]))
    def it_is_set_up(self, backend: str) -> None:
        self.backend = backend
        self.responder.configure(msgspec.convert({"backend": backend, "guardrails": False}, ResponderSettings))

    def deliver(self, event: Event, address: Address, wait_ms: int = 0) -> int:
        led_to = self.responder.hear(event, address, after_ms=wait_ms)
        assert all(message.exchange == address.exchange for message in led_to)
        for message in led_to:
            if isinstance(message.event, ResponseRequested):
                assert message.exchange not in self.asked, "asked twice"
                assert not self.ended[message.exchange]
                self.asked[message.exchange] = message.id
            else:
                assert isinstance(message.event, ResponseEmitted)
                self.ended[message.exchange] += 1
        return sum(isinstance(message.event, ResponseEmitted) for message in led_to)

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
        exchange = address.exchange
        was_open, was_asked = not self.ended[exchange], exchange in self.asked
        ends = self.deliver(ENDINGS[ending], address, wait)
        if ending in WAITING:
            self.held.add(exchange)
        if exchange in self.held:
            # What is held gives way to nothing but the word of an earlier stage.
            assert ends <= int(was_open)
        elif was_asked and ending in MODES:
            assert ends == 0, "the model that was asked has the word"
        else:
            now_asked = exchange in self.asked and not was_asked
            assert not now_asked or (self.backend == "llm" and ending in BY_A_MODEL)
            assert ends + now_asked == int(was_open)

    @rule(address=addresses, answer=st.sampled_from(sorted(ANSWERS)), wait=WAITS_MS)
    def a_model_answers(self, address: Address, answer: str, wait: int) -> None:
        exchange = address.exchange
        was_open = not self.ended[exchange]
        request = self.asked.get(exchange, "never asked")
        ends = self.deliver(msgspec.structs.replace(ANSWERS[answer], request=request), address, wait)
        if exchange in self.held:
            assert ends == 0, "what is held gives way to no answer"
        else:
            assert ends == int(was_open and exchange in self.asked)

    @rule(address=addresses, answer=st.sampled_from(sorted(ANSWERS)), request=st.sampled_from(["", "an act plan"]))
    def a_model_answers_somebody_else(self, address: Address, answer: str, request: str) -> None:
        assert self.deliver(msgspec.structs.replace(ANSWERS[answer], request=request), address) == 0

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
