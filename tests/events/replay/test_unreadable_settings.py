"""What was decided under settings that this release does not take is left unverified, with the setting and value."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from actors.registry import ACTORS
from deploy.replaying.what_if_verdicts import redecided
from events.errors import Misconfigured
from events.log import Stored
from schemas.identity import content_hash
from schemas.settings.settings_fault import settings_fault
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.each import each
from tests.events.recording import Recording
from tests.events.replaying import verified
from tests.events.whatif.asking import live, whatif

TALK = [("noon", "Hello!"), ("noon", "What is the capital of Peru?")]
BOLD = {"router": {"base_scores": {"RESPOND": 0.9}}, "swarm": {"grace_ms": 50_000}}


def recorded_with(log: Sequence[Stored], actor: str, change: Callable[[dict[str, Any]], object]) -> list[Stored]:
    """The log as another release would have recorded it, whose settings took other values."""

    def recorded(each: Stored) -> Stored:
        if not each.subject.endswith(f".{actor}.configured"):
            return each
        body = msgspec.json.decode(each.data)
        change(body["settings"])
        body["settings_hash"] = content_hash(body["settings"])
        return msgspec.structs.replace(each, data=msgspec.json.encode(body))

    return [recorded(each) for each in log]


KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "a range that was tightened": (
        "router",
        lambda settings: settings["base_scores"].update(RESPOND=7.5),
        "router.base_scores",
    ),
    "an unknown choice": ("router", lambda settings: settings.update(profile="zen"), 'router.profile = "zen"'),
    "a type that changed": ("router", lambda settings: settings.update(act="sometimes"), 'router.act = "sometimes"'),
    "an actor that is not installed": (
        "swarm",
        lambda settings: settings.update(required=["router", "doorman"]),
        'swarm.required = ["router","doorman"]: there is no stage \'doorman\'',
    ),
    "values that do not go together": (
        "swarm",
        lambda settings: settings.update(health_weight=0.5),
        "swarm.health_weight = 0.5: the swarm's weights must add up to 1",
    ),
}


@pytest.fixture(scope="module")
def log() -> Sequence[Stored]:
    return live(TALK, BOLD).log


@each("kind", sorted(KINDS))
def test_nothing_is_called_different_for_settings_that_cannot_be_read(log: Sequence[Stored], kind: str) -> None:
    actor, change, named = KINDS[kind]
    report = verified(ACTORS.values(), recorded_with(log, actor, change))
    assert report.clean, report.differences
    (reason,) = report.unverified
    assert reason.startswith(f"unreadable_settings: {named}")
    assert report.coverage[actor].identical == 0
    assert report.coverage[actor].unverified[reason] > 0
    assert all(not counts.unverified for name, counts in report.coverage.items() if name != actor)


@each("kind", sorted(KINDS))
def test_a_plain_replay_folds_them_all_the_same(log: Sequence[Stored], kind: str) -> None:
    actor, change, _ = KINDS[kind]
    other = recorded_with(log, actor, change)
    folded = verified(ACTORS.values(), other, verify=False)
    assert (folded.fold_errors, folded.unreadable) == (0, {})
    assert folded.state_hashes == verified(ACTORS.values(), other).state_hashes


@each("kind", sorted(KINDS))
def test_a_what_if_takes_from_the_record_what_was_decided_under_them(log: Sequence[Stored], kind: str) -> None:
    actor, change, named = KINDS[kind]
    report = whatif(recorded_with(log, actor, change), {"reflex": {"profile": "seed"}})
    assert (report.changed, report.tallies[actor].decided) == (0, 0)
    (reason,) = report.tallies[actor].held
    assert reason.startswith(f"unreadable_settings: {named}")
    assert f"--set {actor}." in redecided(report)


def test_a_what_if_that_gives_such_a_setting_another_value_decides_anew(log: Sequence[Stored]) -> None:
    other = recorded_with(log, "router", lambda settings: settings.update(profile="zen"))
    report = whatif(other, {"router": {"profile": "seed"}})
    assert report.tallies["router"].decided > 0
    assert report.held_by_reason == {}


def test_a_what_if_that_changes_another_setting_says_that_nothing_was_decided_anew(log: Sequence[Stored]) -> None:
    other = recorded_with(log, "router", lambda settings: settings.update(profile="zen"))
    assert whatif(other, {"router": {"act": False}}).unanswered == ("router",)
    with pytest.raises(Misconfigured, match="act"):
        whatif(other, {"router": {"act": 5}})


def test_settings_that_can_be_read_are_in_force_again_behind_them(log: Sequence[Stored]) -> None:
    recording = Recording([ACTORS["reflex"]])
    for profile in ("seed", "standard"):
        recording.configure({"reflex": ACTORS["reflex"].settings_type(profile=profile)})
        recording.send(InputReceived(text="Hello!"), Address("ann", "noon", f"exchange-{profile}"))
        recording.settle()
    other = [
        msgspec.structs.replace(each, data=each.data.replace(b'"profile":"seed"', b'"profile":"zen"'))
        for each in recording.log
    ]
    other = recorded_with(other, "reflex", lambda _: None)
    report = verified([ACTORS["reflex"]], other)
    assert report.clean, report.differences
    assert (sum(report.unverified.values()), report.identical) == (1, 1)


@each("name", sorted(ACTORS))
def test_every_setting_of_every_actor_is_named_where_its_type_changed(name: str) -> None:
    actor = ACTORS[name]
    settings = msgspec.to_builtins(actor.settings_type())
    assert settings_fault(name, settings, actor.settings_type) == ""
    for field in settings:
        fault = settings_fault(name, settings | {field: [[None]]}, actor.settings_type)
        assert fault.startswith(f"unreadable_settings: {name}.{field}"), fault
