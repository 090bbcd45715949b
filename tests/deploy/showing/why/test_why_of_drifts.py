"""What ``why`` and ``feed`` say of an idle agent's thoughts."""

import msgspec
from rich.console import Console

from deploy.cli.rendering.why.details import LineContext, details
from schemas.catalogue import CATALOGUE
from schemas.event import Event
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftThought, Skip
from schemas.vocabulary.memory import MemoryWandered
from tests.actors.drift.builders import upon
from tests.each import each


def told(event: Event) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        for line in details(event, LineContext()):
            console.print(line)
    return captured.get()


def sample(topic: str) -> Event:
    return CATALOGUE[f"forged_id.{topic}"].sample


def test_a_schedule_says_when_and_whether_it_is_a_long_gap():
    assert "drifts next in 287.4 s, if no exchange is open then" in told(sample("drift.scheduled"))
    long = DriftScheduled(wake_after_ms=600_000, long_gap=True, draws=(0.5, 0.0, 0.3))
    assert "next in 600 s (a long gap)" in told(long)


def test_a_start_says_where_it_looks_and_what_it_drew():
    line = told(sample("drift.started"))
    assert "decaying, salient, recent, random; pick 0.310, for a question; 1 concepts rest, fatigue 0.7" in line


@each(
    ("reason", "words"),
    [
        ("busy", "an exchange is open"),
        ("fatigued", "too many thoughts lately"),
        ("no_episode", "nothing was lived through lately"),
        ("no_seed", "no concept to begin with"),
        ("weak", "what came up is too weak"),
        ("unanswered", "nobody answered"),
        ("forgotten", "what it was about is forgotten"),
    ],
)
def test_a_skip_says_why_and_when_the_next_is_due(reason: Skip, words: str):
    lines = told(DriftSkipped(reason=reason, seed="", activation=0.0, wake_after_ms=0, long_gap=False, draws=()))
    assert f"no thought: {words}" in lines
    assert "again after the next exchange" in lines


def test_what_it_came_upon_names_the_seed_what_that_brings_up_and_the_episode():
    lines = told(upon("r"))
    assert "recent: peru (concept:97, strength 1) brings up, at most 0.7:" in lines
    assert "capital 0.7, concept:32 0.35" in lines
    assert "episode:3: “Asked: What is the capital of Peru?”" in lines
    assert "came upon nothing" in told(MemoryWandered(request="r", reason="no_seed"))


def test_a_request_of_a_model_shows_none_of_the_words():
    lines = told(sample("drift.synthesis_requested"))
    assert "calls a model for reflect" in lines
    assert "What comes to mind?" not in lines


def test_a_thought_is_told_with_what_it_rests_on_and_by_whom():
    thought = sample("drift.thought")
    assert isinstance(thought, DriftThought)
    lines = told(thought)
    assert "question: “An idle question: what more is there between peru and capital?”" in lines
    assert "from peru (recent), activation 0.7, on episode:3; worded by composer" in lines
    fallback = told(msgspec.structs.replace(thought, reason="no_model", text="\x1b[31mred"))
    assert "worded by composer, since no_model" in fallback
    assert "\x1b" not in fallback
