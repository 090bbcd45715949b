"""Which actors share a process in a deployment, and how people say so."""

import pytest

from actors.registry import ACTORS
from deploy.config.loading import Config, all_sections, assignment_layer, load
from deploy.deploying.groups import BadGroup, Group, chosen_groups, default_groups
from deploy.processes.effector_registry import EFFECTORS
from tests.each import each

MODEL = "llm.base_url=http://llm.example/v1"
RECEIVER = 'webhook.receivers={ops = {style = "slack", url_file = "x"}}'


def configured(*sets: str) -> Config:
    return load(all_sections(), environment={}, flags=[assignment_layer(each) for each in sets])


def test_every_actor_runs_in_exactly_one_default_group() -> None:
    hosts = [host for group in default_groups(configured(MODEL, RECEIVER)) for host in group.hosted]
    assert sorted(hosts) == sorted({*ACTORS, *EFFECTORS, "ledger", "gateway"})


def test_what_has_nothing_to_do_is_not_run() -> None:
    assert {"llm", "webhook"}.isdisjoint(group.name for group in default_groups(configured()))


def test_a_group_takes_its_actors_out_of_the_default_groups() -> None:
    groups = {
        group.name: group for group in chosen_groups(configured(), ["guards=reflex,breaker*4", "gateway=gateway*3"])
    }
    assert groups["guards"] == Group("guards", ("reflex", "breaker"), 4)
    assert groups["senses"] == Group("senses", ("intuition", "appraisal", "coherence"), 2)
    assert groups["gateway"].replicas == 3


def test_one_group_may_run_all_that_decides() -> None:
    names = [group.name for group in chosen_groups(configured(), ["everything=all*2"])]
    assert names == ["everything", "ledger", "gateway"]


@each(
    ("words", "told"),
    [
        (["senses"], "is no group: write NAME=ACTOR,ACTOR[*]REPLICAS"),
        (["Senses=reflex"], "is no group"),
        (["a b=reflex"], "is no group"),
        (["x=reflex*many"], "is no group"),
        (["x=reflex*²"], "is no group"),
        (["x=reflex*0"], "0 replicas: there may be 1 to 99"),
        (["x=reflex*100"], "100 replicas"),
        (["x="], "group x has no actor"),
        (["x=refelx"], "group x: there is no actor 'refelx': did you mean 'reflex'"),
        (["x=reflex,reflex"], "names an actor twice"),
        (["x=reflex", "y=reflex"], "reflex is in x and in y: name it once"),
        (["x=reflex", "x=router"], "a group is given twice"),
        (["senses=reflex"], "group senses is given without intuition, appraisal, coherence, breaker"),
        (["ledger=ledger*2"], "the ledger is one file"),
        (["x=ledger"], "the ledger has a process of its own"),
        (["x=reflex,ledger"], "the ledger has a process of its own"),
        (["door=gateway"], "the gateway has a process of its own"),
        (["gateway=reflex"], "the gateway has a process of its own"),
        (["x=reflex,gateway"], "the gateway is no actor"),
        (["x=reflex,llm"], "llm speaks to the world outside"),
        (["admin=reflex"], "'admin' is a broker login of its own"),
    ],
)
def test_groups_that_make_no_sense_are_refused_by_name(words: list[str], told: str) -> None:
    with pytest.raises(BadGroup, match=told):
        chosen_groups(configured(), words)
