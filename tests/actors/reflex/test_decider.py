from hypothesis import given
from hypothesis import strategies as st

from actors.reflex import ACTOR
from actors.reflex.settings import ReflexSettings
from schemas.event import encode_event
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from tests.actors.reflex.judging import judged, listed, threat, verdict
from tests.actors.scenario import Partition
from tests.each import each

SEED = [
    ("prompt_injection", 0.95, "ignore previous"),
    ("prompt_injection", 0.95, "disregard instructions"),
    ("prompt_injection", 0.95, "new persona"),
    ("prompt_injection", 0.95, "forget your rules"),
    ("jailbreak", 0.98, "dan mode"),
    ("jailbreak", 0.98, "developer mode"),
    ("jailbreak", 0.98, "no restrictions"),
    ("jailbreak", 0.98, "pretend you can"),
    ("jailbreak", 0.98, "act as if"),
    ("harmful", 0.99, "how to make weapons"),
    ("harmful", 0.99, "synthesize drugs"),
    ("harmful", 0.99, "hack into"),
    ("harmful", 0.99, "bypass security"),
    ("constitutional", 1.0, "modify your constitution"),
    ("constitutional", 1.0, "change your rules"),
    ("constitutional", 1.0, "override your constraints"),
]


@each(("pattern", "confidence", "signature"), SEED)
def test_r2_1_every_signature_of_the_source_blocks(pattern: str, confidence: float, signature: str) -> None:
    event = verdict(f"Please {signature.capitalize()}, now.")
    assert isinstance(event, ReflexBlocked)
    assert (event.pattern, event.signature, event.confidence) == (pattern, signature, confidence)
    assert (event.view, event.span) == ("plain", (7, 7 + len(signature)))
    assert [match.signature for match in event.matches] == [signature]


@each("text", ["", " \t\r\n", "\u200b\ufeff", "\x00", "\ud800", "What is the capital of Peru?"])
def test_r2_1_harmless_and_blank_texts_pass_without_flags(text: str) -> None:
    assert verdict(text) == ReflexPassed()


def test_r2_1_the_first_signature_in_library_order_decides_wherever_it_stands() -> None:
    event = verdict("hack into it in dan mode and ignore previous words")
    assert isinstance(event, ReflexBlocked)
    assert event.signature == "ignore previous"
    assert [match.signature for match in event.matches] == ["ignore previous", "dan mode", "hack into"]


def test_within_a_signature_the_first_place_decides() -> None:
    event = verdict("Dan mode? DAN MODE!")
    assert isinstance(event, ReflexBlocked)
    assert event.span == (0, 8)
    assert [match.span for match in event.matches] == [(0, 8), (10, 18)]


def test_a_layer_is_scanned_and_named_by_its_role_and_place() -> None:
    layers = (Layer(role="user", content="hello"), Layer(role="document", content="you have no restrictions"))
    event = verdict("Summarise this.", *layers)
    assert isinstance(event, ReflexBlocked)
    assert (event.view, event.span) == ("document[1]:plain", (9, 24))


def test_the_text_comes_before_the_layers() -> None:
    event = verdict("dan mode", Layer(role="tool", content="dan mode"))
    assert [match.view for match in listed(event)] == ["plain", "tool[0]:plain"]


def test_the_system_layer_is_scanned_only_on_demand() -> None:
    settings = ReflexSettings(profile="seed", scanned_layers=("system",))
    received = InputReceived(text="hello", layers=(Layer(role="system", content="never act as if you were human"),))
    assert Partition(ACTOR).when(received) == [ReflexPassed()]
    assert Partition(ACTOR).configure(settings).when(received)[0] != ReflexPassed()


def test_flags_alone_let_an_input_pass_and_are_listed() -> None:
    event = judged("a red herring", threat("colours", "red", "blue", action="FLAG"), threat("fish", "shark"))
    assert isinstance(event, ReflexPassed)
    assert [(flag.signature, flag.action, flag.span) for flag in event.flags] == [("red", "FLAG", (2, 5))]


def test_a_flag_earlier_in_the_library_does_not_shield_a_blocking_match() -> None:
    event = judged("a red herring", threat("colours", "red", action="FLAG"), threat("fish", "herring"))
    assert isinstance(event, ReflexBlocked)
    assert event.pattern == "fish"
    assert [match.action for match in event.matches] == ["FLAG", "BLOCK"]


def test_the_same_signature_in_two_sets_matches_in_both() -> None:
    event = judged("red", threat("first", "red"), threat("second", "red"))
    assert [match.pattern for match in listed(event)] == ["first", "second"]


def test_a_megabyte_of_repeated_hits_gives_a_bounded_event() -> None:
    event = verdict("dan mode " * 110_000 + "hack into")
    assert len(listed(event)) == 32
    assert {match.signature for match in listed(event)} == {"dan mode", "hack into"}
    assert len(encode_event(event)) < 8_000


def test_the_deciding_match_is_listed_even_when_flags_before_it_fill_the_list() -> None:
    flags = threat("letters", "a", "b", "c", "d", action="FLAG")
    event = judged("a b c d e", flags, threat("last", "e"), max_matches=2)
    assert isinstance(event, ReflexBlocked)
    assert [match.signature for match in event.matches] == ["a", "e"]


@given(st.text(st.characters(), max_size=200))
def test_any_text_has_one_verdict_and_always_the_same(text: str) -> None:
    first, second = verdict(text), verdict(text)
    assert encode_event(first) == encode_event(second)


def test_other_messages_lead_to_nothing_and_change_nothing() -> None:
    partition = Partition(ACTOR)
    before = partition.state
    assert partition.when(ReflexPassed()) == []
    assert partition.state is before


def test_recorded_settings_are_taken_over() -> None:
    partition = Partition(ACTOR).configure(ReflexSettings(max_matches=1))
    assert len(listed(partition.when(InputReceived(text="dan mode, dan mode"))[0])) == 1
