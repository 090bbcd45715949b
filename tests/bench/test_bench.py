"""``neuraxis bench`` where its peers are not installed: a sentence, and no traceback."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
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


def test_a_benchmark_without_its_peer_ends_with_one_sentence(tmp_path: Path) -> None:
    code = (
        "import importlib.util as util, sys\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'eventsourcing' else real(name, *more)\n"
        "sys.argv = ['neuraxis', 'bench', 'ledger']\n"
        "from deploy.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False
    )
    assert done.returncode == 1
    assert done.stderr.endswith("eventsourcing not installed: pip install 'neuraxis[bench]'\n"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize(
    "arguments", [("--llm", "local"), ("detection", "--llm", "local"), ("hops", "detection", "--rows", "8")]
)
def test_a_models_judgement_is_measured_by_one_form_of_the_command_alone(arguments: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(bench, arguments)
    assert refused.exit_code == 2
    assert "neuraxis bench detection --llm URL --corpus FILE" in refused.output
