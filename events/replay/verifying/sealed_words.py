"""Finds decisions that need sealed words which cannot be opened any more, and so cannot be verified.

Words reach a decision through its message or through the state.

- Message: the decision is made again with texts that raise an error when they are read. If none is read, it does not
  need them.
- State: the message is folded twice, with different words. If the states differ, the state depends on the words. From
  then on no decision on that session counts as verified, until the actor is ordered to forget the session, or the
  session starts over.
"""

from typing import Any

import msgspec

from events.decoding import Recorded
from events.log import Seal
from events.partition_fold import Delivery, Processed
from events.sealing.sealed_texts import CLOSED_TEXT
from schemas.actor import Actor, Emission, Message, Scope
from schemas.event import encode_event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered
from schemas.wording.personal import change_personal, personal_location

SEALED = "sealed"
"""The reason for which such decisions are counted as unverified."""

_OTHER_WORDS = "other words, 0"
"""The text that is folded instead of sealed words, to see whether the state depends on them; any other would do."""


class ReadSealedText(Exception):
    """A decision read a text that cannot be opened."""


def _refuse(*_: object) -> Any:
    raise ReadSealedText


class _UnreadableText:
    """Stands for a text; any use of it raises, except passing it on."""

    __slots__ = ()
    __getattribute__ = __eq__ = __ne__ = __bool__ = __str__ = __repr__ = __format__ = _refuse
    __hash__ = _refuse


class SealedWordsTracker:
    """Follows one partition of an actor through a replay."""

    def __init__(self, actor: Actor[Any]) -> None:
        self._actor = actor
        self._sessions: set[tuple[str, str]] = set()

    def copy(self) -> "SealedWordsTracker":
        """Return another tracker with the same notes."""
        other = SealedWordsTracker(self._actor)
        other._sessions = set(self._sessions)
        return other

    def may_matter(self, processed: Processed) -> bool:
        """Whether sealed words may matter for this message. A cheap check first: mostly they do not."""
        return bool(self._sessions) or _is_closed(processed.delivery) or any(map(_is_closed, processed.recorded))

    def needed_for(self, processed: Processed) -> bool:
        """Whether a decision needs, or may need, words that are sealed; call it before the fold."""
        if any(_is_closed(own) for own in processed.recorded):
            return True
        delivery = processed.delivery
        if not isinstance(delivery, Recorded):
            return False
        message = delivery.message
        return _session_of(message) in self._sessions or (
            _is_closed(delivery) and self._reads_words(processed.before, message)
        )

    def may_have_changed(self, message: Message) -> bool:
        """Whether a decision may depend on sealed words of another session in the same state."""
        if self._actor.scope is Scope.SESSION:
            return False
        return any(self._actor.scope is Scope.GLOBAL or agent == message.agent for agent, _ in self._sessions)

    def fold(self, processed: Processed) -> None:
        """Note which sealed words a processed message and its events bring into the state."""
        delivery = processed.delivery
        if isinstance(delivery, Recorded):
            session = _session_of(delivery.message)
            if _clears_session(delivery):
                self._sessions.discard(session)
            if _is_closed(delivery) and self._state_depends(processed.before, delivery.message):
                self._sessions.add(session)
        self._sessions.update(_session_of(own.message) for own in processed.recorded if _is_closed(own))

    def _reads_words(self, before: Any, message: Message) -> bool:
        try:
            for emitted in self._actor.decide(before, _reworded(message, _UnreadableText())):
                # Encoding raises if the decision passes them on: then its own event holds the words.
                encode_event(emitted.event if isinstance(emitted, Emission) else emitted)
        except Exception:
            return True
        return False

    def _state_depends(self, before: Any, message: Message) -> bool:
        try:
            one = self._actor.fold(before, message)
            return bool(one != self._actor.fold(before, _reworded(message, _OTHER_WORDS)))
        except Exception:
            # States that cannot be folded or compared may hold anything.
            return True


def _clears_session(delivery: Recorded) -> bool:
    event = delivery.message.event
    if isinstance(event, ForgetOrdered):
        return event.what == "session"
    # An empty input has no words that could be sealed, so it does not show whether the session starts over.
    return isinstance(event, InputReceived) and bool(event.text) and not _is_closed(delivery)


def _is_closed(delivery: Delivery) -> bool:
    """Whether a message has sealed words that cannot be opened: a placeholder stands for them."""
    return delivery.stored.seal is Seal.CLOSED


def _session_of(message: Message) -> tuple[str, str]:
    return message.agent, message.session


def _reworded(message: Message, word: Any) -> Message:
    part = personal_location(type(message.event))
    if part is None:
        return message
    event = change_personal(part, message.event, lambda _place, text: word if text == CLOSED_TEXT else text)
    return msgspec.structs.replace(message, event=event)
