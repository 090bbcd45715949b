"""The actor that CONTRIBUTING.md builds, built as it says, in a copy of the project."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP = re.compile(
    r"^\*\*\d\. .*?\*\*: `(?P<path>[^`]+\.py)`.*?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


RAISED = re.compile(r"^<!-- behaviour 2: (?P<path>\S+) -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def written_files(text: str) -> dict[str, str]:
    return {match["path"]: match["code"] for match in STEP.finditer(text)}


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_actor_of_the_guide_passes_its_tests_and_those_of_the_catalogue(tmp_path: Path) -> None:
    for folder in ("schemas", "events", "actors", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    files = written_files((ROOT / "CONTRIBUTING.md").read_text())
    assert set(files) == {
        "schemas/vocabulary/greeter.py",
        "actors/greeter/decider.py",
        "actors/greeter/__init__.py",
        "tests/actors/greeter/test_greeter.py",
    }
    for path, code in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code)
    run(tmp_path, "tests.schemas.write_samples")
    assert "greeter" in run(tmp_path, "pytest", "-p", "no:cacheprovider", "-v", "tests/actors/greeter")
    rules = "greeter or imports or decider"
    tested = ("tests/schemas/test_catalogue.py", "tests/test_architecture.py")
    assert "greeter" in run(tmp_path, "pytest", "-p", "no:cacheprovider", "-v", "-k", rules, *tested)
    raise_behaviour(tmp_path, files)
    assert "behaviour_1" in run(tmp_path, "pytest", "-p", "no:cacheprovider", "-v", "tests/actors/greeter")
    run(tmp_path, "mypy", "--no-incremental", "schemas/vocabulary/greeter.py", "actors/greeter")
    run(tmp_path, "ruff", "check", "--no-cache", "schemas/vocabulary/greeter.py", "actors/greeter")
    run(tmp_path, "ruff", "format", "--no-cache", "--check", *files)


def raise_behaviour(folder: Path, files: dict[str, str]) -> None:
    """Change what the actor decides, as the guide says."""
    raised = {match["path"]: match["code"] for match in RAISED.finditer((ROOT / "CONTRIBUTING.md").read_text())}
    assert set(raised) == {"actors/greeter/decider.py", "tests/actors/greeter/test_behaviours.py"}
    decider = files["actors/greeter/decider.py"]
    (folder / "actors/greeter/decider.py").write_text(
        decider[: decider.index("def decide")] + raised["actors/greeter/decider.py"]
    )
    (folder / "tests/actors/greeter/test_behaviours.py").write_text(raised["tests/actors/greeter/test_behaviours.py"])
    last = "    failed=GreeterFailed,\n"
    actor = files["actors/greeter/__init__.py"]
    assert last in actor
    (folder / "actors/greeter/__init__.py").write_text(actor.replace(last, f"{last}    behaviour=2,\n"))
