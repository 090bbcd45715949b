"""``python -m deploy.cli``: the same as ``neuraxis``, whatever is on PATH."""

from deploy.cli import main

main()
