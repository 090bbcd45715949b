"""The configuration: what wins, what is refused, and what the refusal says."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm import LlmSettings
from deploy.config.loading import (
    RUNNING_SECTIONS,
    BadConfiguration,
    Layer,
    all_sections,
    assignment_layer,
    environment_layers,
    flag_layer,
    load,
    resolve,
    section_names,
)
from tests.each import each


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    cold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.3
    streak: int = 3


class Router(msgspec.Struct, frozen=True, kw_only=True):
    profile: Literal["seed", "calibrated"] = "calibrated"
    weights: dict[str, float] = {}
    thresholds: Inner = Inner()
    layers: tuple[str, ...] = ("user",)
    enabled: bool = True
    name: str = ""
    low: int = 1
    high: int = 2

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


SECTIONS = {"router": Router}


def router(*layers: Layer) -> Router:
    return resolve(SECTIONS, layers).section("router", Router)


def refusal(*layers: Layer) -> str:
    with pytest.raises(BadConfiguration) as refused:
        resolve(SECTIONS, layers)
    return str(refused.value)


def in_file(**values: Any) -> Layer:
    return Layer("neuraxis.toml", {"router": values})


def test_without_any_layer_every_value_is_its_default() -> None:
    assert router() == Router()


def test_later_layers_win_and_each_value_knows_its_layer() -> None:
    config = resolve(
        SECTIONS,
        [
            in_file(low=0, high=7, name="file"),
            *environment_layers({"NEURAXIS_ROUTER__NAME": "environment", "NEURAXIS_ROUTER__HIGH": "8"}),
            flag_layer("--high", "router.high", "9"),
        ],
    )
    values = {value.key: (value.value, value.origin) for value in config.values()}
    assert values["router.low"] == (0, "neuraxis.toml")
    assert values["router.name"] == ("environment", "NEURAXIS_ROUTER__NAME")
    assert values["router.high"] == (9, "--high")
    assert values["router.enabled"] == (True, "default")


def test_tables_are_merged_key_by_key_and_lists_replaced() -> None:
    merged = router(
        in_file(weights={"a": 1.0, "b": 2.0}, layers=["user", "tool"]), in_file(weights={"b": 3.0}, layers=["system"])
    )
    assert merged.weights == {"a": 1.0, "b": 3.0}
    assert merged.layers == ("system",)


def test_dotted_names_of_a_flat_table_need_no_quotes() -> None:
    assert router(in_file(weights={"respond": {"base": 0.4}})).weights == {"respond.base": 0.4}
    assert router(assignment_layer("router.weights.respond.base=0.4")).weights == {"respond.base": 0.4}


@each(
    ("variable", "value", "field", "expected"),
    [
        ("NEURAXIS_ROUTER__ENABLED", "false", "enabled", False),
        ("NEURAXIS_ROUTER__HIGH", "12", "high", 12),
        ("NEURAXIS_ROUTER__NAME", "12", "name", "12"),
        ("NEURAXIS_ROUTER__NAME", 'a "quoted" name', "name", 'a "quoted" name'),
        ("NEURAXIS_ROUTER__PROFILE", "seed", "profile", "seed"),
        ("NEURAXIS_ROUTER__LAYERS", '["tool", "user"]', "layers", ("tool", "user")),
        ("NEURAXIS_ROUTER__THRESHOLDS__COLD", "0.5", "thresholds", Inner(cold=0.5)),
        ("NEURAXIS_ROUTER__THRESHOLDS__COLD", "1", "thresholds", Inner(cold=1.0)),
        ("NEURAXIS_ROUTER__WEIGHTS__RESPOND", "0.5", "weights", {"RESPOND": 0.5}),
    ],
)
def test_text_from_the_environment_is_read_as_what_the_key_takes(
    variable: str, value: str, field: str, expected: object
) -> None:
    assert getattr(router(*environment_layers({variable: value})), field) == expected


@each(
    ("assignment", "told"),
    [
        ("breaker.recent_falsehood_count=6", "6 is above 'window', which is 5: it would never apply"),
        ("breaker.window=2", "breaker.recent_falsehood_count: 3 is above 'window', which is 2: it would never apply"),
        ("guardrails.max_fatigue=0.4", "guardrails.fatigue_threshold: 0.5 is above 'max_fatigue', which is 0.4"),
        ("swarm.decisions_needed=200", "200 is above 'decisions_kept', which is 100"),
        ("monitor.decisions_needed=201", "201 is above 'decisions', which is 200"),
        ("reflection.insights_needed=513", "513 is above 'insights_kept', which is 512"),
        ("memory.fading_above=3.0", "3.0 is above 'fading_below', which is 2.0"),
        ("intuition.similar_most=0", "0 silences what the arbiter does by precedents: it would never apply"),
    ],
)
def test_a_new_setting_that_would_never_apply_is_refused_and_a_recorded_one_is_read(assignment: str, told: str) -> None:
    layer, setting = assignment_layer(assignment), assignment.partition("=")[0]
    with pytest.raises(BadConfiguration, match=re.escape(f"--set {setting}: {told}")):
        resolve(all_sections(), [layer])
    ((section, values),) = layer.values.items()
    ((key, value),) = values.items()
    assert getattr(msgspec.convert(values, all_sections()[section], strict=False), key) == float(value)


@each(
    ("word", "backend", "base_url"),
    [
        ("http://127.0.0.1:8000/v1", "openai", "http://127.0.0.1:8000/v1"),
        (" local ", "local", ""),
        ("composer", "composer", ""),
        ("auto", "auto", ""),
        ("", "auto", ""),
    ],
)
def test_one_variable_names_the_language_model_in_a_word(word: str, backend: str, base_url: str) -> None:
    layers = environment_layers({"NEURAXIS_LLM_URL": word})
    settings = resolve({"llm": LlmSettings}, layers).section("llm", LlmSettings)
    assert (settings.backend, settings.base_url) == (backend, base_url)


def test_the_variable_of_a_single_setting_wins_over_the_word() -> None:
    layers = environment_layers({"NEURAXIS_LLM__BASE_URL": "http://b/v1", "NEURAXIS_LLM_URL": "http://a/v1"})
    config = resolve({"llm": LlmSettings}, layers)
    assert config.section("llm", LlmSettings).base_url == "http://b/v1"
    assert config.origins["llm.base_url"] == "NEURAXIS_LLM__BASE_URL"


def test_other_environment_variables_are_none_of_our_business() -> None:
    assert environment_layers({"NEURAXIS_DEBUG": "1", "PATH": "/bin", "OTHER__THING": "x"}) == []


def test_what_an_orchestrator_sets_for_a_service_of_our_name_is_let_be() -> None:
    service = {"NEURAXIS_PORT": "tcp://10.0.0.1:8642", "NEURAXIS_SERVICE_HOST": "10.0.0.1", "NEURAXIS_ROUTER_PORT": "1"}
    assert load(SECTIONS, environment=service).origins == load(SECTIONS, environment={}).origins


@each(
    ("variable", "meant"),
    [
        ("NEURAXIS_LLM_UL", "NEURAXIS_LLM_URL"),
        ("NEURAXIS_API_KEYZ", "NEURAXIS_API_KEYS"),
        ("NEURAXIS_LLM_KEY", "NEURAXIS_LLM_API_KEY"),
        ("NEURAXIS_MODEL", "NEURAXIS_MODELS"),
        ("NEURAXIS_ROUTER_PROFILE", "NEURAXIS_ROUTER__PROFILE"),
    ],
)
def test_a_variable_that_is_ours_but_for_a_slip_is_refused(variable: str, meant: str) -> None:
    with pytest.raises(BadConfiguration, match=f"{variable}: there is no such variable: did you mean {meant}"):
        load(SECTIONS, environment={variable: "x"})


def test_the_key_of_a_client_is_no_key_of_a_gateway() -> None:
    with pytest.raises(BadConfiguration, match=r"NEURAXIS_API_KEY is read by clients alone.* mean NEURAXIS_API_KEYS"):
        load(SECTIONS, environment={"NEURAXIS_API_KEY": "x"})


@each(
    ("layer", "expected"),
    [
        (
            Layer("neuraxis.toml", {"ruoter": {}}),
            "neuraxis.toml: there is no section 'ruoter': did you mean 'router'?",
        ),
        (in_file(profil="seed"), "neuraxis.toml: router has no key 'profil': did you mean 'profile'?"),
        (
            in_file(thresholds={"clod": 0.2}),
            "neuraxis.toml: router.thresholds has no key 'clod': did you mean 'cold'?",
        ),
        (in_file(zzz=1), "neuraxis.toml: router has no key 'zzz': there are profile, weights, thresholds"),
        (in_file(enabled="yes"), "neuraxis.toml: router.enabled: Expected `bool`, got `str`"),
        (in_file(thresholds={"cold": 2.0}), "neuraxis.toml: router.thresholds.cold: Expected `float` <= 1.0"),
        (in_file(thresholds=3), "neuraxis.toml: router.thresholds: Expected `object`, got `int`"),
        (in_file(weights={"a": 1.0, "b": "x"}), "neuraxis.toml: router.weights.b: Expected `float`, got `str`"),
        (Layer("neuraxis.toml", {"router": 3}), "neuraxis.toml: router is a section"),
        (
            flag_layer("--high", "router.high", "many"),
            "--high: router.high: Expected `int`, got `str`",
        ),
        (
            environment_layers({"NEURAXIS_ROUTER__PROFIEL": "seed"})[0],
            "NEURAXIS_ROUTER__PROFIEL: router has no key 'profiel': did you mean 'profile'?",
        ),
        (
            assignment_layer("router.profile=loud"),
            "--set router.profile: Invalid enum value 'loud': there are calibrated, seed",
        ),
    ],
)
def test_a_refusal_names_the_place_the_key_and_the_nearest_name(layer: Layer, expected: str) -> None:
    assert refusal(layer).startswith(expected)


def test_values_at_odds_are_blamed_on_the_layer_that_brought_the_fault() -> None:
    assert refusal(in_file(high=5), flag_layer("--low", "router.low", "6"), in_file(name="x")).startswith("--low: ")


def test_values_may_be_at_odds_until_a_later_layer_mends_them() -> None:
    assert router(in_file(low=5), flag_layer("--high", "router.high", "6")).low == 5


def test_a_missing_file_that_was_named_is_refused_and_one_that_was_not_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(SECTIONS, environment={}).section("router", Router) == Router()
    with pytest.raises(BadConfiguration, match=r"there is no configuration file other\.toml"):
        load(SECTIONS, file=Path("other.toml"), environment={})


def test_the_file_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("neuraxis.toml").write_text('[router]\nname = "here"\n')
    assert load(SECTIONS, environment={}).section("router", Router).name == "here"


@each(("key", "number"), [("high", 2**63), ("high", 10**20), ("thresholds.streak", -(2**63) - 1)])
def test_a_number_that_does_not_fit_where_settings_are_recorded_is_refused(key: str, number: int) -> None:
    """Settings are hashed, and kept in snapshots, as numbers of 64 bits."""
    expected = f"--set router.{key}: Integer value out of range: write a smaller one"
    assert refusal(assignment_layer(f"router.{key}={number}")) == expected
    assert router(assignment_layer(f"router.high={2**63 - 1}")).high == 2**63 - 1
    assert router(assignment_layer(f"router.weights.ACT={number}")).weights == {"ACT": float(number)}


@pytest.mark.parametrize("content", [b"[router\n", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_file_that_is_not_toml_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "neuraxis.toml"
    path.write_bytes(content)
    with pytest.raises(BadConfiguration, match=r"neuraxis\.toml (is not TOML|cannot be read)"):
        load(SECTIONS, file=path, environment={})


@each("assignment", ["router.profile", "profile=seed", "=1"])
def test_an_assignment_of_another_form_is_refused_with_an_example(assignment: str) -> None:
    with pytest.raises(BadConfiguration, match=r"write SECTION\.KEY=VALUE"):
        assignment_layer(assignment)


def test_every_section_of_this_release_resolves_at_its_defaults() -> None:
    sections = all_sections()
    config = resolve(sections, [])
    assert {name: kind() for name, kind in sections.items()} == dict(config.sections)


def test_a_command_that_needs_no_actor_passes_over_their_sections() -> None:
    config = resolve(RUNNING_SECTIONS, [in_file(profile="seed")], ignore_others=True)
    assert set(config.sections) == set(RUNNING_SECTIONS)
    assert set(section_names()) == set(all_sections())
    for layer in (Layer("neuraxis.toml", {"rooter": {}}), *environment_layers({"NEURAXIS_ROOTER__PROFILE": "seed"})):
        with pytest.raises(BadConfiguration, match="there is no section 'rooter': did you mean 'router'"):
            resolve(RUNNING_SECTIONS, [layer], ignore_others=True)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_keys = st.sampled_from(["profile", "weights", "thresholds", "layers", "enabled", "name", "low", "high"]) | st.text()


@given(st.dictionaries(_keys, _plain, max_size=4), st.booleans())
def test_whatever_a_file_holds_is_taken_or_refused_by_name(values: dict[str, Any], textual: bool) -> None:
    layer = Layer("neuraxis.toml", {"router": values}, textual=textual)
    try:
        said = f"neuraxis.toml: {type(resolve(SECTIONS, [layer])).__name__}"
    except BadConfiguration as refused:
        said = str(refused)
    assert said.startswith("neuraxis.toml: ")


@each(
    ("text", "complaint"),
    [
        (f"[router]\nlow = {'1' * 5_000}\n", "holds a number of thousands of digits"),
        (f"[router]\nlow = {'[' * 3_000}\n", "is not TOML"),
    ],
)
def test_a_value_that_python_cannot_read_is_refused_in_a_file(text: str, complaint: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "neuraxis.toml"
        file.write_text(text)
        with pytest.raises(BadConfiguration, match=complaint):
            load(SECTIONS, file=file, environment={})


@each("value", ["1" * 5_000, "[" * 3_000, "3\nhigh = 9", "3\n[other]\nx = 1"])
def test_a_value_that_python_cannot_read_or_that_holds_another_key_is_refused_in_text(value: str) -> None:
    assert "router.low" in refusal(Layer("NEURAXIS_ROUTER__LOW", {"ROUTER": {"LOW": value}}, textual=True))


def test_a_name_that_is_written_in_two_ways_is_set_once() -> None:
    assert refusal(in_file(weights={"a.b": 1.0, "a": {"b": 2.0}})).endswith(
        "router.weights.a.b is set twice: give it one value"
    )


def test_two_variables_that_set_the_same_are_refused() -> None:
    both = {"NEURAXIS_ROUTER__NAME": "a", "NEURAXIS_router__name": "b"}
    with pytest.raises(BadConfiguration, match="NEURAXIS_ROUTER__NAME and NEURAXIS_router__name set the same"):
        load(SECTIONS, environment=both)
