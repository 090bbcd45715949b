"""Which language model a set uses, and what the doctor says of it."""

import asyncio
import socketserver
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.contract.privacy.settings import PrivacySettings
from actors.llm.endpoint import BadEndpoint
from actors.llm.local import missing_parts
from actors.llm.settings import LlmSettings, Models
from actors.registry import ACTORS
from deploy.config.loading import BadConfiguration, Config, Layer, all_sections, assignment_layer, model_layer, resolve
from deploy.config.models import (
    PURPOSES,
    ModelChoice,
    actor_flags,
    check_answerable,
    choose_model,
    is_listed,
    names_of,
    usable_models,
    worker_flags,
)
from deploy.config.settings import UpstreamSettings
from deploy.config.upstream_settings import upstream_of
from deploy.health.findings import Verdict
from deploy.health.model_check import ConsumerLoad, judge_effectors, judge_model
from deploy.processes.running_set import ModelInUse
from schemas.effectors.model_settings import model_setting_paths
from tests.actors.llm.scripted import fails, in_background, says, serving
from tests.each import each

NOWHERE = "http://127.0.0.1:9/v1"


def configured(*layers: Layer) -> Config:
    return resolve(all_sections(), layers)


def attached(*layers: Layer, ollama: str = NOWHERE, environment: dict[str, str] | None = None) -> ModelChoice:
    return asyncio.run(choose_model(configured(*layers), environment or {}, ollama=ollama, search_timeout_s=30))


# --- what is found


def test_without_a_word_and_without_an_ollama_the_composer_answers() -> None:
    found = attached()
    assert found.use == ModelInUse(backend="composer")
    assert found.why == "no endpoint is set, and no Ollama answers here"


def test_masking_without_its_packages_is_an_error_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.contract.privacy.recognising.find_spec", lambda name: None)
    attached()
    for setting in ("llm.privacy.mask=true", "llm.privacy.agents.clerk=true"):
        with pytest.raises(BadEndpoint, match=r"llm.privacy is on.*pip install 'neuraxis\[privacy\]'"):
            attached(assignment_layer(setting))
    on = UpstreamSettings(url=NOWHERE, privacy=PrivacySettings(mask=True))
    with pytest.raises(BadEndpoint, match=r"gateway\.upstream\.privacy is on"):
        upstream_of(on, {})


def test_an_ollama_on_this_machine_is_taken_with_the_models_that_it_has() -> None:
    with in_background(says(), models=("nomic-embed-text:latest", "llama3:8b", "qwen3:4b")) as ollama:
        found = attached(ollama=ollama.base_url)
    assert found.use == ModelInUse(backend="openai", base_url=ollama.base_url, models=("qwen3:4b",))
    assert found.why == "an Ollama answers on this machine"
    assert ollama.asked == []


@pytest.mark.parametrize("models", [(), ("nomic-embed-text:latest",)])
def test_an_ollama_without_a_model_that_talks_is_passed_over(models: tuple[str, ...]) -> None:
    with in_background(says(), models=models) as ollama:
        found = attached(ollama=ollama.base_url)
    assert (found.use.backend, found.why) == (
        "composer",
        "no endpoint is set, and the Ollama here has no model for it",
    )


def test_another_service_on_the_port_of_ollama_is_passed_over() -> None:
    # A thread accepts and closes each connection: a loop that ends may leave one open that its caller has given up.
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        serving_it = Thread(target=server.serve_forever)
        serving_it.start()
        try:
            found = attached(ollama=f"http://127.0.0.1:{server.server_address[1]}/v1")
        finally:
            server.shutdown()
            serving_it.join()

    assert found.use.backend == "composer"


def test_a_word_wins_over_an_ollama() -> None:
    with in_background(says()) as ollama, in_background(says(), models=("mine",)) as named:
        assert attached(model_layer("--llm", "composer"), ollama=ollama.base_url).use.backend == "composer"
        found = attached(model_layer("--llm", named.base_url), ollama=ollama.base_url)
        assert (found.use.base_url, found.use.models, found.warning) == (named.base_url, ("mine",), "")


def test_an_address_in_the_file_is_enough() -> None:
    with in_background(says()) as endpoint:
        found = attached(Layer("neuraxis.toml", {"llm": {"base_url": endpoint.base_url}}))
    assert found.use.backend == "openai"


def test_a_named_endpoint_counts_even_while_it_is_down_and_the_doubt_is_told() -> None:
    found = attached(model_layer("--llm", NOWHERE))
    assert (found.use.backend, found.use.base_url) == ("openai", NOWHERE)
    assert found.warning == "it does not list its models: endpoint unreachable (ConnectError)"


def test_a_model_that_somebody_set_is_asked_though_it_is_not_listed() -> None:
    with in_background(says(), models=("qwen3:8b",)) as endpoint:
        found = attached(model_layer("--llm", endpoint.base_url), assignment_layer("llm.models.tiebreak=tiny:1b"))
    assert found.models == Models(**dict.fromkeys(PURPOSES, "qwen3:8b") | {"tiebreak": "tiny:1b"})
    assert found.warning == "it does not list tiny:1b"


def test_the_key_travels_with_the_question() -> None:
    async def run() -> str:
        async with serving(fails(401)) as endpoint:
            endpoint.models = ()
            found = await choose_model(
                configured(model_layer("x", endpoint.base_url)), {"NEURAXIS_LLM_API_KEY": "a\nb"}
            )
            return found.warning

    with pytest.raises(BadEndpoint, match="the key in NEURAXIS_LLM_API_KEY is not one line"):
        asyncio.run(run())


def test_a_local_model_that_cannot_run_is_refused_with_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "gone.gguf"
    with pytest.raises(BadEndpoint, match="the local model cannot run"):
        attached(model_layer("--llm", "local"), assignment_layer(f"llm.local_model={file}"))


@pytest.mark.skipif(bool(missing_parts(LlmSettings())), reason=missing_parts(LlmSettings()))
def test_the_local_model_is_the_one_that_is_installed() -> None:
    assert attached(model_layer("--llm", "local")).use == ModelInUse(
        backend="local", models=("SmolLM2-135M-Instruct.Q4_1",)
    )


# --- contexts


def test_the_context_that_an_endpoint_lists_is_told_to_responder_and_effectors() -> None:
    with in_background(says(), models=("qwen3:8b@16384", "qwen3:4b@40960", "huge@9")) as endpoint:
        found = attached(model_layer("--llm", endpoint.base_url))
    assert (found.context, found.assumed, found.warning) == (16_384, False, "")
    assert told(actor_flags(found, configured()))["responder.context_tokens"] == "16384"
    assert told(worker_flags(found))["llm.context_tokens"] == "16384"


def test_a_context_that_is_set_wins_over_a_listed_one() -> None:
    with in_background(says(), models=("qwen3:8b@16384",)) as endpoint:
        found = attached(model_layer("--llm", endpoint.base_url), assignment_layer("llm.context_tokens=5000"))
    assert found.context == 5_000


def test_an_ollama_that_says_nothing_is_taken_to_have_what_it_has_by_default() -> None:
    with in_background(says()) as ollama:
        found = attached(ollama=ollama.base_url)
    assert (found.context, found.assumed) == (4_096, True)
    assert told(actor_flags(found, configured()))["responder.context_tokens"] == "4096"
    assert "llm.context_tokens" not in told(worker_flags(found))


def test_where_nobody_says_the_responder_keeps_its_own() -> None:
    with in_background(says()) as endpoint:
        found = attached(model_layer("--llm", endpoint.base_url))
    assert found.context == 0
    assert "responder.context_tokens" not in told(actor_flags(found, configured()))


def test_a_context_that_somebody_gave_the_responder_stays() -> None:
    found = ModelChoice(use=ModelInUse(backend="openai", base_url="http://llm/v1"), why="", context=100)
    assert told(actor_flags(found, configured()))["responder.context_tokens"] == "512"
    set_ = configured(assignment_layer("responder.context_tokens=2000"))
    assert "responder.context_tokens" not in told(actor_flags(found, set_))


def test_a_base_url_with_a_query_reaches_the_effectors_whole() -> None:
    url = "https://llm.example/openai/deployments/gpt?api-version=2024-10-21"
    found = ModelChoice(use=ModelInUse(backend="openai", base_url=url), why="")
    layers = [assignment_layer(f"{key}={value}") for key, value in told(worker_flags(found)).items()]
    assert configured(*layers).section("llm", LlmSettings).base_url == url


names = st.sampled_from(["qwen3:8b", "qwen3:4b", "qwen3:14b", "llama3:latest", "mistral:7b", "bge-embed", "x"])


@given(st.lists(names, unique=True), st.sets(st.sampled_from(PURPOSES)))
def test_every_model_asked_is_listed_or_was_set_by_somebody(listed: list[str], pinned: set[str]) -> None:
    wanted = Models(act="mine", respond="llama3")
    found = usable_models(wanted, listed, pinned)
    if found is None:
        assert all("embed" in name for name in listed)
        return
    for purpose in PURPOSES:
        name = getattr(found, purpose)
        if purpose in pinned or is_listed(getattr(wanted, purpose), listed):
            assert name == getattr(wanted, purpose)
        else:
            assert is_listed(name, listed)
            assert "embed" not in name


def test_a_purpose_without_a_model_stays_without_one() -> None:
    found = usable_models(Models(reflect=""), ("qwen3:8b",), ())
    assert found is not None
    assert found.reflect == ""
    assert names_of(found) == ("qwen3:8b",)


# --- what the workers are told


def told(flags: tuple[str, ...]) -> dict[str, str]:
    assert set(flags[::2]) <= {"--set"}
    return dict(assignment.split("=", 1) for assignment in flags[1::2])


OPENAI = ModelChoice(use=ModelInUse(backend="openai", base_url="http://llm/v1"), models=Models(act="a"), why="")


def test_the_actors_are_told_to_ask_the_model() -> None:
    asked = told(actor_flags(OPENAI, configured()))
    assert asked["router.tiebreak"] == "llm"
    assert asked["responder.backend"] == "llm"
    assert asked["reflection.backend"] == "llm"
    assert asked["drift.synthesis"] == "llm"
    assert asked["arbiter.deliberative_timeout_ms"] == "55000"
    configured(*(assignment_layer(f"{key}={value}") for key, value in asked.items()))


def test_what_somebody_has_set_stays() -> None:
    config = configured(assignment_layer("responder.backend=composer"))
    assert "responder.backend" not in told(actor_flags(OPENAI, config))


def test_inputs_are_judged_by_a_model_that_is_attached_but_not_by_the_small_one_in_the_worker() -> None:
    assert told(actor_flags(OPENAI, configured()))["appraisal.trust.judge"] == "llm"
    local = ModelChoice(use=ModelInUse(backend="local"), why="")
    assert "appraisal.trust.judge" not in told(actor_flags(local, configured()))


def test_without_a_model_the_actors_are_told_nothing() -> None:
    assert actor_flags(ModelChoice(use=ModelInUse(backend="composer"), why=""), configured()) == ()


@each(
    "asking",
    [
        "appraisal.trust.gate=both",
        "appraisal.trust.gate=llm",
        "appraisal.trust.judge=llm",
        "drift.synthesis=llm",
        "reflection.backend=llm",
        "responder.backend=llm",
        "router.tiebreak=llm",
    ],
)
def test_an_actor_that_is_set_to_ask_a_model_is_refused_where_none_is_attached(asking: str) -> None:
    none = ModelChoice(use=ModelInUse(backend="composer"), why="llm.backend says so")
    config = configured(assignment_layer(asking))
    with pytest.raises(BadConfiguration, match=rf"{asking} .*none is attached: llm.backend says so.*llm.base_url"):
        check_answerable(none, config)
    check_answerable(OPENAI, config)
    check_answerable(none, configured())


def test_the_effectors_are_told_the_model_and_the_configuration_takes_it() -> None:
    layers = [assignment_layer(f"{key}={value}") for key, value in told(worker_flags(OPENAI)).items()]
    settings = configured(*layers).section("llm", LlmSettings)
    assert (settings.backend, settings.base_url, settings.models.act) == ("openai", "http://llm/v1", "a")


# --- what the doctor says


@pytest.mark.parametrize(("use", "verdict"), [(None, Verdict.WARN), (ModelInUse(backend="composer"), Verdict.FAIL)])
def test_settings_that_ask_a_model_are_wrong_where_none_is_attached(use: ModelInUse | None, verdict: Verdict) -> None:
    found = judge_model(use, (), ("appraisal.trust.gate=llm",))
    assert found.verdict is verdict
    assert "appraisal.trust.gate=llm asks a language model" in found.detail
    assert "llm.base_url" in found.remedy


IN_USE = ModelInUse(backend="openai", base_url="http://llm/v1", models=("a", "b"))


@each(
    ("use", "listed", "verdict", "detail"),
    [
        (None, (), Verdict.SKIP, "unknown"),
        (ModelInUse(backend="composer"), (), Verdict.SKIP, "the composer answers"),
        (ModelInUse(backend="local", models=("a",)), (), Verdict.OK, "a, in the process"),
        (IN_USE, ("a", "b:latest", "c"), Verdict.OK, "a, b at http://llm/v1"),
        (IN_USE, ("a",), Verdict.WARN, "does not list b"),
        (IN_USE, "no answer within 3 s", Verdict.FAIL, "no answer within 3 s"),
    ],
)
def test_a_model_is_judged_by_what_its_endpoint_lists(use: Any, listed: Any, verdict: Verdict, detail: str) -> None:
    found = judge_model(use, listed)
    assert found.verdict is verdict
    assert detail in found.detail
    assert bool(found.remedy) is (verdict in (Verdict.WARN, Verdict.FAIL))


@each(
    ("found", "verdict", "detail"),
    [
        ({}, Verdict.SKIP, "none are needed"),
        ({"llm": ConsumerLoad(4, 0, 0), "delegate": ConsumerLoad(0, 1, 3)}, Verdict.OK, "at most 3 requests waiting"),
        ({"llm": ConsumerLoad(0, 0, 5), "delegate": ConsumerLoad(1, 0, 0)}, Verdict.FAIL, "nobody serves llm"),
        ({"llm": None}, Verdict.FAIL, "nobody serves llm"),
    ],
)  # fmt: skip
def test_effectors_that_nobody_serves_are_told(found: Any, verdict: Verdict, detail: str) -> None:
    judged = judge_effectors(found)
    assert judged.verdict is verdict
    assert detail in judged.detail


def test_settings_that_ask_a_model_are_found_by_their_mark_however_deep() -> None:
    marked = {name: list(model_setting_paths(actor.settings_type)) for name, actor in ACTORS.items()}
    assert (marked["responder"], marked["appraisal"], marked["clock"]) == (["backend"], ["trust.judge"], [])


def test_a_setting_that_is_marked_takes_the_word_for_a_model() -> None:
    for actor in ACTORS.values():
        for path in model_setting_paths(actor.settings_type):
            value: object = "llm"
            for part in reversed(path.split(".")):
                value = {part: value}
            msgspec.convert(value, actor.settings_type)
