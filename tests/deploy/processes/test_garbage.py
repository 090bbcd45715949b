"""The garbage collector of a process that serves."""

import subprocess
import sys

from tests.e2e.live import environment


def test_what_is_loaded_when_a_process_begins_to_serve_is_never_searched_again() -> None:
    code = (
        "import gc\n"
        "from deploy.processes import garbage\n"
        "loaded = len(gc.get_objects())\n"
        "before = gc.get_threshold()\n"
        "garbage.freeze_loaded()\n"
        "assert gc.get_freeze_count() > loaded / 2, (gc.get_freeze_count(), loaded)\n"
        "assert len(gc.get_objects()) < loaded / 10, len(gc.get_objects())\n"
        "assert gc.get_threshold() == (garbage.YOUNG, before[1], garbage.OLD)\n"
        "assert garbage.YOUNG > before[0] and garbage.OLD > before[2]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, "")
