"""What the Makefile does before anything of the project is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_an_environment_that_a_failed_attempt_left_without_pip_is_completed(tmp_path: Path) -> None:
    """Debian's Python without python3-venv leaves one; installing that and calling make again did not help."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml", "clients/python/pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    python = tmp_path / ".venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True, timeout=60)
    assert subprocess.run([python, "-c", "import pip"], capture_output=True, timeout=60, check=False).returncode == 1
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTHONPATH"))}
    done = subprocess.run(
        ["make", ".venv/.ready", f"PYTHON={sys.executable}", "PIP=:", "PRODUCT=clients"],  # nothing is downloaded
        cwd=tmp_path,
        env=inherited,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert subprocess.run([python, "-c", "import pip"], timeout=60, check=False).returncode == 0
