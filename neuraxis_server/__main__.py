"""``python -P -m neuraxis_server``: the same as ``neuraxis``, whatever is on PATH."""

from neuraxis_server import main

if __name__ == "__main__":
    main()
