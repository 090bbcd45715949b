"""Which actors share a process in a deployment, and how many copies of it run."""

from collections.abc import Iterator, Sequence

import msgspec

from actors.registry import ACTORS
from deploy.config.loading import Config
from deploy.processes.broker.users import ADMIN, OBSERVER, OPERATOR, READER, SPECIALIST, SYSTEM
from deploy.processes.effector_registry import EFFECTORS, configured_effectors
from deploy.processes.worker import LEDGER, UnknownWork, check_work
from schemas.intake.whole_numbers import read_whole_number

GATEWAY = "gateway"
"""The group of the gateway, which is no worker."""

MOST_REPLICAS = 99
"""Most copies of a group's process: an actor has no more partitions."""

_ROLE_LOGINS = (ADMIN, OBSERVER, OPERATOR, READER, SPECIALIST, SYSTEM)
"""Broker logins of every deployment; a group's login cannot have such a name."""

# The default group `senses` reads inputs and holds attacks back, `path` decides what to answer, `clock` watches both.
# All other actors, on which no answer waits, are in the group `mind`.
_SENSES = ("reflex", "intuition", "appraisal", "coherence", "breaker")
_PATH = ("arbiter", "memory", "router", "act", "guardrails", "responder")
_CLOCK = ("clock", "swarm", "alerts")


class BadGroup(ValueError):
    """A deployment cannot have the groups that were asked for; the message says why."""

    code = "bad_group"


class Group(msgspec.Struct, frozen=True):
    """Copies of one process.

    ``name`` is also that of their broker login. ``hosted`` names the actors or effectors in each, the ledger or the
    gateway.
    """

    name: str
    hosted: tuple[str, ...]
    replicas: int = 1


def default_groups(config: Config) -> tuple[Group, ...]:
    """Return the groups that run unless others are chosen, without effectors that the configuration does not use."""
    placed = {*_SENSES, *_PATH, *_CLOCK}
    effectors = configured_effectors(config)
    calling_models = tuple(name for name in effectors if name != "webhook")
    found = (
        Group("senses", _SENSES, 2),
        Group("path", _PATH, 2),
        Group("clock", _CLOCK, 2),
        Group("mind", tuple(name for name in ACTORS if name not in placed), 1),
        Group("llm", calling_models, 2),
        Group("webhook", tuple(name for name in effectors if name == "webhook"), 1),
        Group(LEDGER, (LEDGER,), 1),
        Group(GATEWAY, (GATEWAY,), 2),
    )
    return tuple(group for group in found if group.hosted)


def chosen_groups(config: Config, options: Sequence[str]) -> tuple[Group, ...]:
    """Return the default groups, changed by ``options`` such as ``senses=reflex,intuition*4``.

    A group that is named takes its actors out of the default groups; the rest of those stays.

    Raises:
        BadGroup: an option is not a group, or the groups contradict each other.
    """
    given = [_parsed(option) for option in options]
    placed: dict[str, str] = {}
    for group in given:
        for each in group.hosted:
            if each in placed:
                other = placed[each]
                where = f"twice in {group.name}" if other == group.name else f"in {other} and in {group.name}"
                raise BadGroup(f"{each} is {where}: name it once")
            placed[each] = group.name
    if len(names := [group.name for group in given]) != len(set(names)):
        raise BadGroup("a group is given twice: name all of its actors in one --group")
    rest = list(_without(placed, default_groups(config)))
    for group in rest:
        if group.name in names:
            raise BadGroup(
                f"group {group.name} is given without {', '.join(group.hosted)}: name these in it or in another group, "
                "or give it another name"
            )
    return (*given, *rest)


def _without(placed: dict[str, str], groups: Sequence[Group]) -> Iterator[Group]:
    for group in groups:
        if left := tuple(each for each in group.hosted if each not in placed):
            yield Group(group.name, left, group.replicas)


def _parsed(option: str) -> Group:
    name, equals, rest = option.partition("=")
    listed, times, count = rest.partition("*")
    if not (equals and _is_name(name) and (read_whole_number(count) is not None if times else True)):
        raise BadGroup(f"{option!r} is no group: write NAME=ACTOR,ACTOR*REPLICAS, such as senses=reflex,intuition*4")
    if name in _ROLE_LOGINS:
        raise BadGroup(f"{name!r} is a broker login of its own: give the group another name")
    replicas = int(count) if times else 1
    if not 1 <= replicas <= MOST_REPLICAS:
        raise BadGroup(f"group {name}: {count} replicas: there may be 1 to {MOST_REPLICAS}")
    hosted = _checked_names(name, [each.strip() for each in listed.split(",") if each.strip()])
    for alone in (LEDGER, GATEWAY):
        if (alone in hosted or name == alone) and (hosted != (alone,) or name != alone):
            raise BadGroup(f"the {alone} has a process of its own: write --group {alone}={alone}*REPLICAS")
    if name == LEDGER and replicas > 1:
        raise BadGroup("the ledger is one file, which one process writes: it has 1 replica")
    if any(each in ACTORS for each in hosted) and (outside := [each for each in hosted if each in EFFECTORS]):
        raise BadGroup(
            f"group {name}: {', '.join(outside)} speak{'s' if len(outside) == 1 else ''} to the world outside, actors "
            "do not: give them groups of their own"
        )
    return Group(name, hosted, replicas)


def _checked_names(name: str, listed: Sequence[str]) -> tuple[str, ...]:
    if not listed:
        raise BadGroup(f"group {name} has no actor: write {name}=ACTOR,ACTOR")
    if list(listed) == [GATEWAY]:
        return (GATEWAY,)
    try:
        hosted = check_work(listed)
    except UnknownWork as wrong:
        raise BadGroup(f"group {name}: {wrong}") from wrong
    if len(listed) != len(set(listed)):
        raise BadGroup(f"group {name} names an actor twice: name it once")
    return hosted


def _is_name(name: str) -> bool:
    """Whether a name can be that of a Compose service, a systemd unit, a Kubernetes object and a broker login."""
    return name.isascii() and name.islower() and name.isalnum() and name[0].isalpha() and len(name) <= 20
