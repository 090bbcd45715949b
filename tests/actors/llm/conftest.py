"""What most tests of the effector have in common."""

import pytest

from actors.contract.answers.window import AnswerWindow


@pytest.fixture
def unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every piece told at once, as it is read: what is held back is for tests of that."""

    def take(window: AnswerWindow, text: str) -> None:
        window.received = window.released = window.received + len(text)

    monkeypatch.setattr(AnswerWindow, "take", take)
