"""The command line from outside: output, exit statuses and one-line errors."""

import errno
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from deploy.cli import COMMANDS, main
from deploy.cli.failures import explain
from deploy.cli.outcomes import BUG, CheckFailed, WrongUse
from deploy.config.loading import BadConfiguration
from deploy.processes.running_set import NotRunning
from events.errors import Conflict, LedgerDamaged, Misconfigured, Unavailable, UnknownOutcome
from events.jetstream import connection
from tests.broker import Broker
from tests.deploy.typed import arguments_of, command_of, make_read, parse
from tests.each import each


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NATS_URL", raising=False)


def neuraxis(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
    return found


@each("path", commands(), named=" ".join)
def test_the_help_of_every_command_shows_an_example_of_it(path: tuple[str, ...]) -> None:
    result = neuraxis(*path, "--help")
    assert result.exit_code == 0
    assert f"neuraxis {' '.join(path)}" in result.output.partition("Examples:")[2]


def options_of(kind: type[click.ParamType[Any]]) -> list[tuple[tuple[str, ...], str]]:
    """Return the options of all commands that take a value of a kind."""
    found = []
    for path in commands():
        command, _ = command_of(list(path))
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag and isinstance(option.type, kind):
                found.append((path, option.opts[-1]))
    return sorted(found)


def test_no_option_is_taken_that_is_blank() -> None:
    for path, option in options_of(click.ParamType):
        for blank in ("", " \t", "\u3164\u200b"):
            result = neuraxis(*path, option, blank)
            assert (result.exit_code, option in result.stderr) == (2, True), (path, option, result.output)


def test_an_option_of_one_value_is_not_taken_twice() -> None:
    for path, option in options_of(click.ParamType):
        command, _ = command_of(list(path))
        (found,) = (each for each in command.params if option in each.opts)
        result = neuraxis(*path, option, "1", option, "1")
        assert ("it is given twice" in result.stderr) is not found.multiple, (path, option, result.output)


def test_what_is_no_number_lies_within_no_range() -> None:
    assert options_of(click.FloatRange)
    for path, option in options_of(click.FloatRange):
        for written in ("nan", "inf", "1e999"):
            result = neuraxis(*path, option, written)
            told = "no number" in result.stderr or "is not in the range" in result.stderr
            assert (result.exit_code, told) == (2, True), (path, option, result.output)


def test_a_time_that_no_clock_can_hold_is_out_of_range() -> None:
    timed = [path for path, option in options_of(click.FloatRange) if option == "--timeout"]
    assert timed
    for path in timed:
        result = neuraxis(*path, "--timeout", "1e18")
        assert (result.exit_code, "is not in the range" in result.stderr) == (2, True), (path, result.output)


def test_a_count_that_no_log_can_hold_lies_out_of_range() -> None:
    for path, option in options_of(click.IntRange):
        result = neuraxis(*path, option, "9" * 20)
        assert result.exit_code == 2, (path, option, result.output)
        assert "is not in the range" in result.stderr or "more than any log can hold" in result.stderr, (path, option)


@each(
    "arguments",
    [
        ("ask", "caf\udce9"),
        ("ask", "hello", "--session", "caf\udce9"),
        ("breaker", "show", "caf\udce9"),
        ("regulator", "show", "caf\udce9"),
        ("allowances", "add", "a", "--phrase", "caf\udce9", "--why", "x"),
        ("allowances", "withdraw", "a", "caf\udce9", "--why", "x"),
    ],
)
def test_words_that_are_no_text_are_refused(arguments: tuple[str, ...]) -> None:
    result = neuraxis(*arguments)
    assert (result.exit_code, "character 4 is not UTF-8" in result.stderr) == (2, True), result.output


def examples_of(path: tuple[str, ...]) -> list[list[str]]:
    """Return the arguments of the examples in a command's help."""
    told = neuraxis(*path, "--help", environment={"COLUMNS": "1000"}).stdout.partition("Examples:\n")[2]
    return [words for line in told.splitlines() for words in arguments_of(line)]


@pytest.fixture
def examples_read() -> None:
    make_read()


@pytest.mark.usefixtures("examples_read")
@each("path", commands(), named=" ".join)
def test_every_example_of_the_help_can_be_typed(path: tuple[str, ...]) -> None:
    examples = examples_of(path)
    assert examples
    for words in examples:
        parse(words)


@each("path", commands(), named=" ".join)
def test_an_option_that_is_not_there_is_wrong_use_of_every_command(path: tuple[str, ...]) -> None:
    result = neuraxis(*path, "--nosuch")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("neuraxis: No such option '--nosuch'.")
    assert result.stderr.count("\n") == 1


@each("path", [path for path in commands() if "--log FILE" in neuraxis(*path, "--help").stdout])
def test_a_log_that_is_not_there_is_wrong_use_of_every_command_that_reads_one(path: tuple[str, ...]) -> None:
    [words, *_] = [words for words in examples_of(path) if words[: len(path)] == list(path)]
    kept = [word for place, word in enumerate(words) if "--log" not in (word, words[place - 1])]
    result = neuraxis(*kept, "--log", "nowhere.db")
    assert result.exit_code == 2, result.output
    assert "nowhere.db" in result.stderr
    assert result.stderr.count("\n") == 1


@each("group", [(), ("log",), ("schema",), ("config",), ("patterns",)], named=" ".join)
def test_a_group_that_is_named_alone_prints_its_help_as_help(group: tuple[str, ...]) -> None:
    result = neuraxis(*group)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == neuraxis(*group, "--help").stdout
    assert "\nCommands:\n" in result.stdout


@each("group", [(), ("log",), ("regulator",), ("guardrails",)], named=" ".join)
def test_the_list_of_commands_cuts_no_sentence(group: tuple[str, ...]) -> None:
    listed = neuraxis(*group, "--help").stdout.partition("Commands:")[2].partition("Examples:")[0]
    assert "..." not in listed
    assert all(len(line) <= 80 for line in listed.splitlines())


def test_the_help_loads_no_actor_and_no_broker_client() -> None:
    code = (
        "import sys; sys.argv = ['neuraxis', '--help']\n"
        "from deploy.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numpy', 'nats', 'actors', 'structlog', 'rich') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(command in done.stdout for command in COMMANDS)


@each(
    ("arguments", "status", "message"),
    [
        (("frobnicate",), 2, "There is no command 'frobnicate'."),
        (("dcotor",), 2, "did you mean 'doctor'?"),
        (("doctor", "--jsno"), 2, "See `neuraxis doctor --help`."),
        (("doctor",), 3, "no set runs in .neuraxis: start one with `neuraxis up`"),
        (("doctor", "--data", "elsewhere"), 3, "no set runs in elsewhere"),
        (
            ("up", "--sync", "sometimes"),
            2,
            "--sync: broker.sync: write always, never, or an interval such as 500ms or 1s",
        ),
        (("up", "--set", "router.profil=seed"), 2, "router has no key 'profil': did you mean 'profile'?"),
        (("config", "show", "--set", "log.agents=2", "--set", "LOG.agents=4"), 2, "log.agents is set twice"),
        (("what-if", "--set", "router.act=true", "--set", "router.act=false"), 2, "router.act is set twice"),
        (("up", "--sync", "1s", "--set", "broker.sync=always"), 2, "--sync and --set broker.sync set the same"),
        (("up", "--llm", "composer", "--set", "llm.backend=local"), 2, "--llm and --set llm.backend set the same"),
        (("gateway", "--http", ":0", "--set", "gateway.http=off"), 2, "--http and --set gateway.http set the same"),
        (("up", "--config", "none.toml"), 2, "there is no configuration file none.toml"),
        (("up", "--port", "70000"), 2, "70000 is not in the range"),
        (("up", "--nats", "http://x"), 2, "is not a broker's address"),
        (("worker", "ruoter"), 2, "there is no actor 'ruoter': did you mean 'router'? There are act, alerts, "),
        (("worker", "xyz"), 2, "there is no actor 'xyz': there are act, alerts, "),
        (("worker", "nobody"), 2, "all stands for every actor that decides, effectors for delegate, llm, webhook"),
        (("worker", "all"), 3, "no set runs in .neuraxis"),
        (("log", "tial"), 2, "There is no command 'tial': did you mean 'tail'? See `neuraxis log --help`."),
        (("patterns", "xyz"), 2, "There is no command 'xyz': there are import, list, "),
        (("config", "show", "--set", "router.act=maybe"), 2, "got `str`: write true or false"),
        (("config", "show", "--set", "log.stream=a.b"), 2, "log.stream: write a name of letters, digits, _ and - "),
        (("config", "show", "--set", "log.replicas=2"), 2, "Invalid enum value 2: there are 1, 3, 5"),
        (("ask", "x", "--timeout", "soon"), 2, "'soon' is no number."),
        (("ask", "What", "is", "it?"), 2, "Got unexpected extra arguments (is it?): put TEXT in quotes."),
        (("ask", "-5 and 3?"), 2, "No such option '-5': write -- before a TEXT that begins with a dash."),
        (("patterns", "test", "ignore", "all"), 2, "Got unexpected extra argument (all): put TEXT in quotes."),
        (("up", "--processes", "many"), 2, "'many' is no whole number."),
        (("alerts", "--severity", "bad"), 2, "'bad' is not one of 'info', 'warning', 'critical'."),
        (("worker", "router"), 3, "no set runs in .neuraxis"),
        (("worker", "router", "ledger"), 2, "run `neuraxis worker ledger` by itself"),
        (("config", "show", "ruoter"), 2, "there is no section 'ruoter'"),
        (("config", "show", "router.profile"), 2, "name its section, 'router'"),
        (
            ("config", "show", "--set", "router.base_scores.SPEAK=1"),
            2,
            "Invalid enum value 'SPEAK': there are ACKNOWLEDGE, ",
        ),
        (("alerts", "--since", "tomorrow"), 2, "write 1200, 2h or 2026-01-31T12:00Z. See `neuraxis alerts --help`."),
        (("alerts", "--since", "0"), 2, "neither a sequence nor a time"),
        (("alerts", "--since", "0001-01-01T00:00:00+14:00"), 2, "is outside the years 1 to 9999 in UTC: write a seq"),
        (("alerts", "--since", "9000-01-01"), 2, "lies ahead: name a time before now"),
        (("log", "tail", "--since", "9223372036854775808"), 2, "is more than any log can hold"),
        (("feed", "-", "--session", "a\nb"), 2, "the session holds a control character (U+000A) at character 1"),
        (("backup", ""), 2, "it is blank: write a word. See `neuraxis backup --help`."),
        (("restore", "\u3164"), 2, "it is blank: write a word. See `neuraxis restore --help`."),
        (("log", "test", ""), 2, "it is blank: write a word. See `neuraxis log test --help`."),
        (("failed", "list", "--actor", "rotuer"), 2, "no actor or effector 'rotuer': did you mean 'router'?"),
        (("failed", "list", "--actor", "nobody"), 2, "there are act, alerts, "),
        (("feed", "-", "--agent", ""), 2, "'--agent': it is blank: write a word, or leave it out"),
        (("chat", "--agent", "a\x7f"), 2, "the agent holds a control character (U+007F) at character 1"),
        (("chat", "--session", "x" * 257), 2, "the session has 257 characters: at most 256"),
        (("schema", "jsonschema", "forged_id.nothing"), 2, "is not in the catalogue"),
        (("schema", "jsonschema", ""), 2, "'' is not in the catalogue"),
        (
            ("guardrails", "override", " ", "--fatigue", "--by", "a", "--why", "x"),
            2,
            "the loop is empty: name the loop",
        ),
        (("schema", "jsonschema", "forged_id.input.receved"), 2, "did you mean forged_id.input.received?"),
    ],
)
def test_errors_are_one_line_on_stderr_with_the_documented_status(
    arguments: tuple[str, ...], status: int, message: str
) -> None:
    result = neuraxis(*arguments)
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("neuraxis: ")


@each(
    ("error", "status"),
    [
        (CheckFailed("x"), 1),
        (Conflict("x"), 1),
        (LedgerDamaged("x"), 1),
        (WrongUse("x"), 2),
        (BadConfiguration("x"), 2),
        (Misconfigured("x"), 2),
        (click.UsageError("x"), 2),
        (Unavailable("x"), 3),
        (UnknownOutcome("x"), 3),
        (NotRunning("x"), 3),
        (OSError(errno.ENOSPC, "x"), 2),
        (PermissionError(errno.EACCES, "x", "file"), 2),
        (OSError(errno.ENAMETOOLONG, "x", "file"), 2),
        (OSError(errno.EACCES, "x"), BUG),
        (ZeroDivisionError("x"), BUG),
    ],
)
def test_every_kind_of_error_has_its_status(error: Exception, status: int) -> None:
    assert explain(error)[1] == status


@each(
    "arguments",
    [
        ("replay", "--log", "{}"),
        ("why", "last", "--log", "{}"),
        ("state", "clock", "all", "--data", "{}"),
        ("log", "info", "--data", "{}"),
        ("log", "test", "{}"),
        ("log", "import", "{}", "--ledger", "new.db"),
        ("log", "archive", "--older-than", "1", "--ledger", "{}"),
        ("restore", "{}"),
        ("deploy", "compose", "--out", "{}"),
        ("ask", "Hello", "--context", "{}"),
        ("up", "--ready-file", "{}"),
        ("up", "--data", "{}"),
        ("worker", "clock", "--config", "{}"),
        ("patterns", "import", "{}"),
        ("feed", "{}"),
    ],
    named=lambda arguments: " ".join(arguments),
)
def test_a_path_that_cannot_be_used_is_wrong_use_and_named(arguments: tuple[str, ...]) -> None:
    long = "a" * 300
    result = neuraxis(*(each.format(long) for each in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    said = "".join(result.stderr.split())
    assert long in said
    assert "Filenametoolong" in said or "doesnotexist" in said, result.stderr


@each(
    ("arguments", "told"),
    [
        (("patterns", "test", "x", "--file", "f", "--shipped"), "--file and --shipped each say what TEXT is judged by"),
        (("patterns", "test", "x", "--shipped", "--log", "l"), "--shipped and --log each say what TEXT is judged by"),
        (("log", "import", "{}", "--ledger", "new.db", "--nats", "nats://x:1"), "names a file to write into, and the"),
        (
            ("log", "archive", "--older-than", "9", "--nats", "nats://x:1"),
            "--nats: this moves rows of a ledger file, and",
        ),
        (("log", "rebuild", "--context", "production"), "--context: this folds the tables of a ledger file, and no"),
        (
            ("ask", "x", "--nats", "nats://x:1", "--set", "broker.url=nats://y:1"),
            "--nats and --set broker.url each name a broker: give one of them",
        ),
        (("worker", "clock", "--ledger", "x.db"), "--ledger says where 'ledger' writes, and that is not among these"),
        (("bench", "detection", "--llm", "local", "--corpus", "{}", "--json", "x"), "are for the other benchmarks"),
        (("bench", "detection", "--llm", "local", "--corpus", "{}", "--plot", "x"), "are for the other benchmarks"),
    ],
    named=[
        "file and profile",
        "profile and log",
        "file and broker",
        "archive",
        "rebuild",
        "two brokers",
        "worker",
        "bench figures",
        "bench plots",
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    corpus = tmp_path / "prompts.jsonl"
    corpus.touch()
    result = neuraxis(*(each.format(corpus) for each in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in " ".join(result.stderr.split())


def test_a_ready_file_that_is_a_file_of_another_kind_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted when a set starts, and ends."""
    monkeypatch.setattr(connection, "CONNECT_S", 0.3)
    settings = tmp_path / "neuraxis.toml"
    settings.write_text("[log]\n")
    for file in (settings, Path(os.devnull)):
        result = neuraxis("up", "--data", str(tmp_path / "set"), "--ready-file", str(file))
        assert result.exit_code == 2
        assert "it is there, is no ready file, and would be deleted" in " ".join(result.stderr.split())
    assert settings.read_text() == "[log]\n"
    zeros = tmp_path / "ready"
    zeros.write_bytes(b"\0" * 6)
    cut = neuraxis("up", "--data", str(tmp_path / "set"), "--nats", "nats://127.0.0.1:1", "--ready-file", str(zeros))
    assert "no broker answers" in cut.stderr, "a power cut left it"


def test_keys_name_a_setting_that_they_have_no_use_for(tmp_path: Path) -> None:
    result = neuraxis("keys", "list", "--data", str(tmp_path), "--set", "router.profile=seed")
    assert result.exit_code == 0
    assert "--set router.profile changes nothing here" in " ".join(result.stderr.split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [(), ("log",), ("--help",), ("schema", "subjects")], ids=" ".join)
def test_an_output_that_cannot_be_written_is_told(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "deploy.cli", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "neuraxis: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_an_error_of_many_lines_is_told_in_one() -> None:
    assert explain(Misconfigured("one\n  two"))[0] == "one two"


def test_config_show_tells_each_value_and_where_it_came_from() -> None:
    Path("neuraxis.toml").write_text("[log]\nsessions = 8\n")
    result = neuraxis(
        "config", "show", "--json", "--set", "router.profile=seed", environment={"NEURAXIS_BROKER__SYNC": "1s"}
    )
    shown = {row["key"]: (row["value"], row["origin"]) for row in map(json.loads, result.stdout.splitlines())}
    assert shown["log.sessions"] == (8, "neuraxis.toml")
    assert shown["broker.sync"] == ("1s", "NEURAXIS_BROKER__SYNC")
    assert shown["router.profile"] == ("seed", "--set router.profile")
    assert shown["log.agents"] == (4, "default")


def test_config_show_can_be_told_which_sections() -> None:
    result = neuraxis("config", "show", "log")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == [
        "log.stream",
        "log.agents",
        "log.sessions",
        "log.replicas",
        "log.sealed",
    ]


def test_the_catalogue_is_printed_in_every_form() -> None:
    rows = [json.loads(line) for line in neuraxis("schema", "subjects", "--json").stdout.splitlines()]
    assert {"forged_id.input.received", "forged_id.response.emitted"} <= {row["subject"] for row in rows}
    assert neuraxis("schema", "subjects").stdout.startswith("| Subject")
    assert json.loads(neuraxis("schema", "asyncapi").stdout)["asyncapi"].startswith("3.")
    one = json.loads(neuraxis("schema", "jsonschema", "forged_id.input.received").stdout)
    assert "forged_id.input.received" in json.dumps(one)


def test_the_version_is_the_distributions() -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    assert declared in neuraxis("--version").stdout


def test_a_broker_that_is_not_there_is_told_and_fails_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 0.3)
    result = neuraxis("doctor", "--nats", "nats://127.0.0.1:1", "--json")
    assert result.exit_code == 1
    broker = json.loads(result.stdout.splitlines()[0])
    assert (broker["check"], broker["verdict"]) == ("broker", "fail")


def test_a_broker_without_the_log_fails_the_doctor_with_the_remedy(broker: Broker) -> None:
    result = neuraxis("doctor", "--nats", broker.url)
    assert result.exit_code == 1
    assert "holds no stream NEURAXIS" in result.stdout
    assert "neuraxis: 1 of " in result.stderr


def test_output_into_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m deploy.cli schema asyncapi | head -c 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stderr) == (0, "")
