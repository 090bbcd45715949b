"""What a model says while it speaks: pieces of text that come to the caller's inbox ahead of the answer. Pure."""

import msgspec


class AnswerPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer, as ``llm`` sends them; see ``actors.llm.calling.Partial``."""

    request: str
    attempt: int
    index: int
    text: str
    done: bool


def piece_in(data: bytes) -> AnswerPiece | None:
    """Return the piece in what came to an inbox; None for all else, such as the copy of the end."""
    try:
        return msgspec.json.decode(data, type=AnswerPiece)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
