"""``neuraxis bench`` where its peers are not installed: a sentence, and no traceback."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from click.testing import CliRunner

from deploy.cli.running.bench import BENCHES, bench, missing_modules, module_of
from tests.e2e.live import environment
from tests.each import each


@each("name", list(BENCHES))
def test_every_benchmark_can_be_looked_through_for_what_it_needs(name: str) -> None:
    assert find_spec(module_of(name)) is not None, "a benchmark that is not there needs nothing"
    assert set(missing_modules(module_of(name))) <= {
        "eventsourcing",
        "faststream",
        "aiosqlite",
        "scipy",
        "securevector",
    }


def without_peer(folder: Path, *names: str, runs: str = "") -> "subprocess.CompletedProcess[str]":
    """Run benchmarks where ``eventsourcing`` is not installed, in a process that runs ``runs`` first."""
    code = (
        "import importlib.util as util, subprocess, sys\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'eventsourcing' else real(name, *more)\n"
        f"sys.argv = ['neuraxis', 'bench', *{names!r}]\n{runs}"
        "from deploy.cli import main\n"
        "main()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=environment(), check=False
    )


def test_what_will_not_run_is_said_before_the_others_run(tmp_path: Path) -> None:
    # Each benchmark is replaced by a process that says on standard error that it runs.
    runs = (
        "run = subprocess.run\n"
        "subprocess.run = lambda command, **how: run([sys.executable, '-c', "
        "f'import sys; print({command[2]!r}, file=sys.stderr)'], **how)\n"
    )
    done = without_peer(tmp_path, "router", "ledger", runs=runs)
    assert done.returncode == 1
    first, ran, *_ = done.stderr.splitlines()
    assert first == "ledger will not run: eventsourcing not installed: pip install 'neuraxis[bench]'"
    assert ran == module_of("router")
    assert module_of("ledger") not in done.stderr
    assert done.stderr.endswith("\nneuraxis: eventsourcing not installed: pip install 'neuraxis[bench]'\n")


def test_a_benchmark_without_its_peer_ends_with_one_sentence(tmp_path: Path) -> None:
    done = without_peer(tmp_path, "ledger")
    assert done.returncode == 1
    assert done.stderr.endswith("eventsourcing not installed: pip install 'neuraxis[bench]'\n"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stdout


@each("arguments", [("--llm", "local"), ("detection", "--llm", "local"), ("hops", "detection", "--rows", "8")])
def test_a_models_judgement_is_measured_by_one_form_of_the_command_alone(arguments: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(bench, arguments)
    assert refused.exit_code == 2
    assert "neuraxis bench detection --llm URL --corpus FILE" in refused.output
