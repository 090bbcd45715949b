"""What docs/client.md shows runs as it stands, against a set of processes, and prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.live import TIMEOUT_S, Live, environment

PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")


def test_the_programs_of_the_page_print_what_it_says(live: Live) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-P", "-c", "\n".join(programs)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=live.folder,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert len(printed) == 4
    assert all(f"`{line}`" in PAGE for line in printed), printed
