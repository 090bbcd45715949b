"""What of an answer is told while a model speaks, and what is left for its end."""

from actors.gateway.answer_pieces import AnswerPiece, piece_in
from actors.gateway.http.openai.streamed_text import StreamedText


def piece(text: str, index: int, attempt: int = 1, request: str = "r") -> AnswerPiece:
    return AnswerPiece(request=request, attempt=attempt, index=index, text=text, done=False)


def test_pieces_are_told_as_they_come_and_the_rest_at_the_end() -> None:
    speech = StreamedText()
    assert [speech.take(piece(text, place)) for place, text in enumerate([" ", " Li", "ma"])] == ["", "Li", "ma"]
    assert speech.rest("Lima.") == "."
    assert speech.rest("Lima") == ""


def test_an_answer_that_is_begun_again_waits_for_its_end() -> None:
    speech = StreamedText()
    speech.take(piece("Li", 0))
    assert speech.take(piece("Qui", 0, attempt=2)) == ""
    assert speech.take(piece("to", 0, request="rerun")) == ""
    assert speech.rest("Lima") == "ma"
    assert speech.rest("Quito") is None


def test_an_attempt_of_which_nothing_was_told_leaves_no_trace() -> None:
    speech = StreamedText()
    speech.take(piece(" ", 0))
    assert speech.take(piece("Lima", 0, attempt=2)) == "Lima"


def test_behind_a_piece_that_is_missing_nothing_is_told() -> None:
    speech = StreamedText()
    assert [speech.take(piece(text, index)) for index, text in ((0, "Li"), (2, "x"), (0, "Li"))] == ["Li", "", ""]
    assert speech.rest("Limax") == "max"


def test_all_but_pieces_is_passed_over() -> None:
    assert piece_in(b'{"topic": "forged_id.response.emitted", "response": "x"}') is None
    assert piece_in(b"\xff") is None
