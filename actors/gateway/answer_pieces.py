"""Pieces of an answer's text, which a model sends to the caller's inbox while it still generates. Pure."""

import msgspec


class AnswerPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer, as the effector ``llm`` sends it; see ``actors.llm.calling.SentPiece``.

    ``request`` is the id of the event that asks the model. ``index`` counts the pieces of an ``attempt`` from 0. A
    later attempt begins the text anew. ``done`` is always false: the copy of the exchange's end, which comes to the
    same inbox, has no such field.
    """

    request: str
    attempt: int
    index: int
    text: str
    done: bool


def piece_in(data: bytes) -> AnswerPiece | None:
    """Return the piece in a message of an inbox; None for any other, such as the copy of the exchange's end."""
    try:
        return msgspec.json.decode(data, type=AnswerPiece)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
