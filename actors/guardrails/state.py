"""What a partition of guardrails keeps, and how overrides and external loops change it. Pure.

An override is a person's order that lifts a limit of a loop family for a time. An external loop is a deliberation that
another engine reports.
"""

import msgspec

from actors.guardrails.bias import Biases
from actors.guardrails.external_loops import ExternalLoop
from actors.guardrails.loop_family import Family, LiftedLimit, reopened_family, split_loop_id
from actors.guardrails.open_exchange import OpenExchange
from actors.guardrails.settings import GuardrailsSettings
from schemas.actor import Message
from schemas.persistent import ExpiringMap, Map
from schemas.vocabulary.guardrails import GuardrailsOverridden
from schemas.vocabulary.loops import LoopCompleted

DONE = "done"
"""The status of a loop that may be judged."""

_NS_PER_MS = 1_000_000


class State(msgspec.Struct, frozen=True):
    """A partition: the loop families and biases of its agents, and the exchanges that are open or ended lately.

    A loop is one pass of a deliberation, its family that pass with its reruns; a *completion* is the event that reports
    a finished loop. A critic scores it. ``outside`` holds the external loops that wait for a critic, by the id of their
    completion. ``critiques`` holds these ids by the id of the event that asks a model.
    """

    settings: GuardrailsSettings = GuardrailsSettings()
    families: ExpiringMap[Family] = ExpiringMap()
    biases: ExpiringMap[Biases] = ExpiringMap()
    pending: Map[str, OpenExchange] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()
    outside: ExpiringMap[ExternalLoop] = ExpiringMap()
    critiques: ExpiringMap[str] = ExpiringMap()


def family_of(state: State, agent: str, loop_id: str) -> Family | None:
    """Return the family of an agent's loop; None if no loop of that family is known."""
    return state.families.get(_key(agent, loop_id))


def has_valid_overrides(state: State, message: Message, completed: LoopCompleted) -> bool:
    """Whether a completion's overrides are valid: they name who gave them, and the loop is not judged already."""
    wanted = completed.override_fatigue or completed.override_max_reruns
    if not wanted or not completed.override_by.strip() or completed.reflection_status != DONE:
        return False
    family = family_of(state, message.agent, completed.loop_id)
    if family is None or not family.decided(completed.loop_id):
        return True
    return (
        reopened_family(_lifted(family, message, completed, state.settings), completed.loop_id, message.time_ns)
        is not None
    )


def reopened_family_of(state: State, message: Message, loop_id: str) -> Family | None:
    """Return the state of a loop's family before a limit ended it with that loop, if that limit has been lifted."""
    family = family_of(state, message.agent, loop_id)
    return None if family is None else reopened_family(family, loop_id, message.time_ns)


def with_lift(state: State, message: Message, completed: LoopCompleted) -> State:
    """Return the state with a completion's overrides in force for its loop's family."""
    family = family_of(state, message.agent, completed.loop_id) or Family()
    return with_family(state, message, completed.loop_id, _lifted(family, message, completed, state.settings))


def _lifted(family: Family, message: Message, completed: LoopCompleted, settings: GuardrailsSettings) -> Family:
    until_ns = message.time_ns + settings.override_lifetime_ms * _NS_PER_MS
    lifted = LiftedLimit(completed.override_by, until_ns)
    return msgspec.structs.replace(
        family,
        fatigue_lifted=lifted if completed.override_fatigue else family.fatigue_lifted,
        reruns_lifted=lifted if completed.override_max_reruns else family.reruns_lifted,
    )


def with_external_loop(state: State, message: Message, completion: str, external_loop: ExternalLoop) -> State:
    """Return the state with one more external loop that waits for its critic; ``completion`` is the id of its event."""
    kept = state.outside.set(completion, external_loop, message.time_ns, _lifetime_ns(state.settings))
    return msgspec.structs.replace(state, outside=kept)


def with_critique_asked(state: State, message: Message, completion: str) -> State:
    """Return the state after a model was asked about an external loop; ``message`` is the event that asks it."""
    kept = state.critiques.set(message.id, completion, message.time_ns, _lifetime_ns(state.settings))
    return msgspec.structs.replace(state, critiques=kept)


def without_external_loop(state: State, completion: str) -> State:
    """Return the state after a completion was judged: its texts are dropped."""
    if not completion or state.outside.get(completion) is None:
        return state
    return msgspec.structs.replace(state, outside=state.outside.delete(completion))


def _lifetime_ns(settings: GuardrailsSettings) -> int:
    return settings.ended_lifetime_ms * _NS_PER_MS


def with_override(state: State, message: Message, overridden: GuardrailsOverridden) -> State:
    """Return the state with an operator's override in force."""
    family = family_of(state, message.agent, overridden.loop_id)
    if family is None:
        return state
    lifted = LiftedLimit(overridden.overridden_by, message.time_ns + overridden.lasts_ms * _NS_PER_MS)
    # An operator's override replaces earlier ones: a limit that it does not lift is in force again.
    family = msgspec.structs.replace(
        family,
        fatigue_lifted=lifted if overridden.override_fatigue else None,
        reruns_lifted=lifted if overridden.override_max_reruns else None,
    )
    return with_family(state, message, overridden.loop_id, family)


def with_family(state: State, message: Message, loop_id: str, family: Family) -> State:
    """Return the state with a loop's family replaced."""
    lifetime_ns = state.settings.family_lifetime_ms * _NS_PER_MS
    families = state.families.set(_key(message.agent, loop_id), family, message.time_ns, lifetime_ns)
    return msgspec.structs.replace(state, families=families)


def _key(agent: str, loop_id: str) -> str:
    return f"{agent}\n{split_loop_id(loop_id)[0]}"


def without_expired(state: State, now_ns: int) -> State:
    """Return the state without expired entries; the same object if there are none."""
    settings = state.settings
    lifetime_ns = _lifetime_ns(settings)
    kept = (
        state.families.aged(now_ns, settings.family_lifetime_ms * _NS_PER_MS),
        state.biases.aged(now_ns, settings.bias_window_ms * _NS_PER_MS),
        state.ended.aged(now_ns, lifetime_ns),
        state.outside.aged(now_ns, lifetime_ns),
        state.critiques.aged(now_ns, lifetime_ns),
    )
    before = (state.families, state.biases, state.ended, state.outside, state.critiques)
    if all(after is each for after, each in zip(kept, before, strict=True)):
        return state
    families, biases, ended, outside, critiques = kept
    return State(settings, families, biases, state.pending, ended, outside, critiques)
