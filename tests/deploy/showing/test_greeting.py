"""What ``up`` says when it is up."""

from pathlib import Path

from deploy.cli.rendering.greeting import Up, called_by, greeting

WHY = "no endpoint is set, and no Ollama answers here"


def up(**changed: object) -> Up:
    given = {
        "program": "neuraxis",
        "data": ".neuraxis",
        "flags": (),
        "http": "http://127.0.0.1:8642",
        "nats": "nats://127.0.0.1:41451",
        "backend": "composer",
        "models": (),
        "why": WHY,
    }
    return Up(**{**given, **changed})  # type: ignore[arg-type]  # the fields' own types, by name


def test_the_greeting_has_the_addresses_who_answers_and_what_to_try() -> None:
    lines = greeting(up()).splitlines()
    assert "  HTTP    http://127.0.0.1:8642" in lines
    assert "  look    http://127.0.0.1:8642/dashboard" in lines
    assert "  broker  nats://127.0.0.1:41451" in lines
    assert "  model   none: a composer answers, from what is remembered" in lines
    assert f"          ({WHY};" in lines
    assert '  neuraxis ask "What is the capital of Peru?"' in lines
    assert max(map(len, lines)) <= 80


def test_its_commands_name_a_folder_that_commands_do_not_look_into_by_themselves() -> None:
    text = greeting(up(data="my data", flags=("--data", "my data")))
    assert "neuraxis why last --data 'my data'" in text
    assert "neuraxis doctor --data 'my data'" in text
    assert max(map(len, greeting(up(flags=("--data", "/srv/neuraxis/a"))).splitlines())) <= 80


def test_it_names_the_models_that_answer() -> None:
    text = greeting(up(backend="openai", models=("qwen3:8b",), why="it was named"))
    assert "model   qwen3:8b (it was named)" in text
    assert "composer" not in text
    assert "doubtful" not in text


def test_it_says_that_a_model_may_give_no_answer() -> None:
    """An endpoint that was named is used, even if it does not answer now."""
    away = "it does not list its models: endpoint unreachable (ConnectError)"
    lines = greeting(up(backend="openai", models=("qwen3:8b",), why="it was named", doubt=away)).splitlines()
    assert lines[lines.index("  model   qwen3:8b (it was named)") + 1] == f"          doubtful: {away}"


def test_its_commands_call_the_program_by_what_finds_it(tmp_path: Path) -> None:
    script = tmp_path / ".venv" / "bin" / "neuraxis"
    script.parent.mkdir(parents=True)
    script.touch()
    assert called_by(str(script), None, tmp_path) == ".venv/bin/neuraxis"
    assert called_by(str(script), "/usr/bin/neuraxis", tmp_path) == ".venv/bin/neuraxis", "another one is on the path"
    assert called_by(str(script), str(script), tmp_path) == "neuraxis"
    assert called_by(str(script), None, tmp_path / "elsewhere") == str(script)
    assert called_by("/somewhere/deploy/cli/__main__.py", None, tmp_path) == "neuraxis"
