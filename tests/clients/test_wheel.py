"""The client as it is installed: what its wheel holds, and what it loads."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import neuraxis

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "python"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
SERVER = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, folder], cwd=CLIENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return Path(folder) / done.stdout.split()[-1]


def test_the_wheel_holds_the_package_its_types_and_its_licence_alone(wheel: Path) -> None:
    source = CLIENT / "src"
    modules = {file.relative_to(source).as_posix() for file in source.rglob("*") if file.suffix in (".py", ".typed")}
    info = f"neuraxis_client-{PROJECT['version']}.dist-info"
    about = {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    with zipfile.ZipFile(wheel) as opened:
        assert set(opened.namelist()) == modules | about
        metadata = opened.read(f"{info}/METADATA").decode()
    needed = [line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires")]
    assert sorted(Requirement(line).name for line in needed if not line.startswith("Requires-Python")) == [
        "httpx",
        "nats-py",
    ]
    assert "neuraxis/py.typed" in modules


def test_from_its_wheel_it_loads_nothing_of_the_server_and_no_broker_client_until_asked(
    wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    look = (
        "import sys, pathlib, neuraxis\n"
        f"assert pathlib.Path(neuraxis.__file__).is_relative_to({str(tmp_path)!r}), neuraxis.__file__\n"
        "assert 'nats' not in sys.modules\n"
        "import neuraxis.nats, neuraxis_pytest\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"neuraxis", "httpx", "nats"} <= loaded
    assert loaded.isdisjoint({"schemas", "events", "actors", "deploy", "bench", "msgspec", "numpy", "structlog"})


def test_both_distributions_are_of_one_version_and_ask_for_the_same_of_what_they_share() -> None:
    assert neuraxis.__version__ == PROJECT["version"] == SERVER["version"]
    theirs = set(SERVER["dependencies"])
    assert set(PROJECT["dependencies"]) <= theirs
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
