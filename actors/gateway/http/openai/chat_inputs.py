"""Turns a request for a completion into an input: its agent, its session, and the part of it that is new. Pure."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from actors.gateway.external_events import InvalidField
from actors.gateway.http.openai.conversation_histories import Histories
from actors.gateway.http.openai.messages import (
    ReadMessage,
    definitions_in,
    layers_of,
    read_message,
    text_of,
    unshown_parameters_in,
)
from actors.gateway.http.openai.requests import ParsedRequest
from actors.gateway.inputs import NothingSaid, check_says_something
from schemas.names import wrong_with_name
from schemas.vocabulary.gateway import Layer

SESSION = "X-Neuraxis-Session"
"""Header that names the session of a conversation."""

ANSWER, FORWARD = "answer", "forward"
"""Kinds of conversations: answered by Neuraxis itself, or by a model of the upstream."""

_DERIVED = 32
"""Hexadecimal digits of a session's name that is derived from a ``user``."""


class ChatInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input made of a request, and the whole conversation, which counts as read once the input is judged.

    ``wordless``: the user sent something that is not text, such as a picture. ``caller``: who asks; empty if the
    session was named. ``conversation`` is its key among the histories. ``messages`` are all that the request has, read
    before or not; ``definitions`` are its tools and its other parameters with text that the model is shown.
    """

    agent: str
    session: str
    text: str
    layers: tuple[Layer, ...]
    wordless: bool
    caller: str
    conversation: str
    messages: tuple[ReadMessage, ...]
    definitions: tuple[ReadMessage, ...]


def named_session(given: ParsedRequest, header: str) -> str:
    """Return the session that a request names: that of the header, else that of its ``user``; empty without either."""
    user = given.request.user
    if header or not user:
        return header
    # The value is the client's choice and may not be a valid name: some send an object, or a long key.
    return user if wrong_with_name(user) is None else f"user:{_hashed(user)}"


def _hashed(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:_DERIVED]


def chat_input_of(
    given: ParsedRequest, histories: Histories, *, agent: str, session: str, kind: str, caller: str = ""
) -> ChatInput:
    """Return the input made of a request: the last user message is its text, everything else that is new is a layer.

    A system prompt is a layer each time: every answer needs it, and answers are checked for parts of it within the same
    exchange. A model of the upstream may continue after a user's text that was read before, for example with the
    results of tools. Then that text is not read again, and the input has no text. ``caller`` is who asks, if the
    session was not named but found. ``kind`` separates histories: a text that was refused counts as read where Neuraxis
    itself answers, but is read again before a model of the upstream is shown it.

    Raises:
        InvalidField: there is no user message, or nothing new has any content.
    """
    written = given.body["messages"]
    messages = tuple(map(read_message, written))
    definitions = definitions_in(given.body)
    last = next((index for index in reversed(range(len(messages))) if messages[index].role == "user"), None)
    if last is None:
        raise InvalidField("messages", "messages has none of role user: send what the user says", "missing_field")
    conversation = f"{kind}\n{agent}\n{session}"
    known = histories.read_of(conversation, messages)
    text = text_of(written[last])
    system = [each for each in messages[:known] if each.role == "system"]
    # The last user message is the input's text, and a layer besides if it holds more than that text.
    new = [each for index, each in enumerate(messages) if index >= known and (index, each.text) != (last, text)]
    if not (known and histories.knows_definitions(conversation, definitions)):
        new += definitions
    continues = kind == FORWARD and last < known and bool(layers_of(new))
    layers = layers_of([*system, *new])
    wordless = any(part.get("text") is None for part in _parts_of(written[last]))
    if kind == FORWARD and not wordless:
        try:
            check_says_something(text, layers)
        except NothingSaid as wrong:
            raise InvalidField(where := f"messages[{last}].content", f"{where}: {wrong}", wrong.code) from wrong
    return ChatInput(
        agent=agent,
        session=session,
        text="" if continues else text,
        layers=(*layers, *layers_of(unshown_parameters_in(given.body))),
        wordless=wordless,
        caller=caller,
        conversation=conversation,
        messages=messages,
        definitions=definitions,
    )


def _parts_of(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else ()
