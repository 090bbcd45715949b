"""``python -m deploy.cli`` runs ``neuraxis``, whether or not that is on PATH."""

from deploy.cli import main

main()
