"""A running set with a model over real HTTP: a poor first answer is rerun, and the better one is what people read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actors.llm.scripted import Asked, Endpoint, Reply, in_background, says, streams
from tests.e2e.live import Live, gateway_of

QUESTION = "Tell me about the ferry to the island: its first departure in the morning, and the length of the crossing."
ASTRAY = "Bananas are rich in potassium and ripen faster beside apples in a paper bag."
SPOKEN = [f"{word} " for word in ("The first ferry to the island leaves at seven in the morning. " * 8).split()]
RIGHT = "The first ferry to the island leaves at seven in the morning, and the crossing takes forty minutes."


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """An endpoint that goes astray at first, unless it is to speak while it thinks."""

    def spoken(asked: Asked) -> Reply | None:
        return streams(*SPOKEN) if "stream" in asked.document else None

    with in_background(says(ASTRAY), says(RIGHT), judge=spoken) as served:
        yield served


@pytest.fixture(scope="module")
def guarded(endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A set that asks it for nothing but answers."""
    folder: Path = tmp_path_factory.mktemp("guarded")
    running = Live(folder, "--llm", endpoint.base_url, "--set", "router.tiebreak=score", "--set", "act.planner=offline")
    yield running
    running.stop()


def test_a_poor_answer_is_rerun_and_the_better_is_emitted(guarded: Live, endpoint: Endpoint) -> None:
    [answer] = guarded.rows("ask", "--json", QUESTION)
    assert (answer["response"], answer["reason"], answer["backend"]) == (RIGHT, answer["mode"], "llm")
    first, second = (asked.document["messages"] for asked in endpoint.asked)
    assert "earlier answer" not in first[0]["content"]
    assert "It did not answer what was asked" in second[0]["content"]
    assert ASTRAY in second[-1]["content"]

    told = guarded.run("why", answer["exchange"]).stdout
    assert f"runs again as {answer['exchange']}_r1" in told
    assert f"best loop {answer['exchange']}_r1: no_issues_detected" in told
    assert "causal chain: complete" in told

    (replayed,) = guarded.rows("replay", "--verify", "--json")
    assert replayed["clean"] is True
    assert replayed["coverage"]["guardrails"]["identical"] >= 2


def test_what_a_model_is_not_shown_of_a_long_input_is_told_with_the_answer(guarded: Live, endpoint: Endpoint) -> None:
    pasted = "".join(f"{number:04}: the ferry to the island was on time.\n" for number in range(1500))
    answer = guarded.ask(pasted + QUESTION)
    sent = endpoint.asked[-1].document["messages"][-1]["content"]
    assert "0000: the ferry" in sent
    assert sent.endswith(QUESTION)
    cut = next(each for each in answer["cuts"] if each["part"] == "text")
    assert cut["kept"] < cut["characters"] == len(pasted + QUESTION)
    assert answer["finish_reason"] == "stop"
    assert "The prompt was too long and was cut: text to " in answer["sentence"]
    assert "cut: text to " in guarded.run("why", answer["exchange"]).stdout


def test_where_nothing_may_set_an_answer_aside_a_client_of_openais_hears_it_as_it_is_spoken(
    guarded: Live, tmp_path: Path
) -> None:
    import openai  # takes long, and each process of a run collects this module

    with (
        gateway_of(guarded, tmp_path / "gateway.log", "--set", "responder.guardrails=false") as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        stream = client.chat.completions.create(
            model="neuraxis",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
            user="hearing",
        )
        *chunks, usage = list(stream)
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]
    assert "".join(texts).strip() == "".join(SPOKEN).strip()
    assert len(texts) > 3, "it is told while it is spoken"
    assert usage.usage is not None
    assert usage.usage.prompt_tokens >= 12
