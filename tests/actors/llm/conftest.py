"""What most tests of the effector have in common."""

import pytest

from actors.contract.answers.window import Window


@pytest.fixture
def unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every piece told at once, as it is read: what is held back is for tests of that."""

    def take(window: Window, text: str) -> None:
        window.taken = window.released = window.taken + len(text)

    monkeypatch.setattr(Window, "take", take)
