"""Prompts and souls in files beside the configuration: their texts are the settings."""

import os
import threading
from pathlib import Path

import pytest

from actors.responder.settings import ResponderSettings
from deploy.config.loading import BadConfiguration, file_layer, load

SECTIONS = {"responder": ResponderSettings}


def responder(folder: Path, configuration: str) -> ResponderSettings:
    file = folder / "neuraxis.toml"
    file.write_text(configuration, encoding="utf-8")
    return load(SECTIONS, file=file, environment={}).section("responder", ResponderSettings)


def test_the_text_of_a_named_file_is_the_setting(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "respond.md").write_text("Answer in verse.\nAlways.\n", encoding="utf-8")
    (tmp_path / "poet.md").write_text("You are a poët.\n", encoding="utf-8")
    settings = responder(
        tmp_path,
        """
        [responder]
        soul = { file = "poet.md" }
        [responder.prompts]
        respond = { file = "texts/respond.md" }
        clarify = "Ask back."
        [responder.souls]
        "support.file" = "You are patient."
        poet = { file = "poet.md" }
        file = "You are an archivist."
        """,
    )
    assert settings.prompts.respond == "Answer in verse.\nAlways."
    assert settings.prompts.clarify == "Ask back."
    assert settings.prompts.acknowledge == ResponderSettings().prompts.acknowledge
    assert settings.soul == "You are a poët."
    assert settings.souls == {
        "support.file": "You are patient.",
        "poet": "You are a poët.",
        "file": "You are an archivist.",
    }


@pytest.mark.parametrize(("name", "content"), [("missing.md", None), ("latin.md", b"caf\xe9")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadConfiguration, match=r"a file that .*neuraxis\.toml names cannot be read"):
        responder(tmp_path, f'[responder]\nsoul = {{ file = "{name}" }}\n')


def test_a_key_that_takes_no_long_text_takes_no_file(tmp_path: Path) -> None:
    (tmp_path / "backend.txt").write_text("llm", encoding="utf-8")
    with pytest.raises(BadConfiguration, match="backend"):
        responder(tmp_path, '[responder]\nbackend = { file = "backend.txt" }\n')


def test_an_empty_prompt_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("\n", encoding="utf-8")
    with pytest.raises(BadConfiguration, match=r"responder\.prompts\.respond"):
        responder(tmp_path, '[responder.prompts]\nrespond = { file = "empty.md" }\n')


def test_without_a_configuration_the_shipped_texts_are_in_force() -> None:
    settings = ResponderSettings()
    for text in (settings.prompts.respond, settings.prompts.clarify, settings.prompts.acknowledge, settings.soul):
        assert len(text) > 50


def test_a_file_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=r"/dev/zero cannot be read: .*more than 4,194,304 bytes"):
        file_layer(Path("/dev/zero"))
    file = tmp_path / "neuraxis.toml"
    file.write_text('[responder]\nsoul = { file = "/dev/zero" }\n')
    with pytest.raises(BadConfiguration, match=r"names cannot be read: .*more than 4,194,304 bytes"):
        file_layer(file)


def test_a_configuration_from_a_pipe_is_read_once_for_all_that_a_command_asks(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=('[responder]\nsoul = "You wait."\n',), daemon=True).start()
    for _ in range(3):
        assert load(SECTIONS, file=pipe, environment={}).section("responder", ResponderSettings).soul == "You wait."


def test_a_pipe_that_nobody_writes_is_given_up_in_time(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadConfiguration, match=r"pipe cannot be read: nobody has written it to its end within 0.2 s"):
        load(SECTIONS, file=pipe, environment={}, wait_s=0.2)
    file = tmp_path / "neuraxis.toml"
    file.write_text('[responder]\nsoul = { file = "pipe" }\n')
    with pytest.raises(BadConfiguration, match="nobody has written it"):
        load(SECTIONS, file=file, environment={}, wait_s=0.2)
