"""Which decisions of a partition need words that cannot be opened any more, and so cannot be verified.

Words reach a decision through its message or through the state.

- Message: the decision is made again with texts that raise an error when they are read. If none is read, it does not
  need them.
- State: the message is folded twice, with different words. If the states differ, the state depends on the words. From
  then on no decision on that session counts as verified, until the actor is ordered to forget the session, or the
  session starts over.
"""

from typing import Any

import msgspec

from events.codec import Recorded
from events.log import Seal
from events.sealing.bodies import CLOSED_TEXT
from events.view import Delivery, Processed
from schemas.actor import Actor, Emission, Message, Scope
from schemas.event import encode_event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered
from schemas.wording.personal import change_personal, personal_part

SEALED = "sealed"
"""The reason for which such decisions are counted as unverified."""

_OTHER_WORDS = "other words, 0"
"""What is folded in place of sealed words, to see whether it makes a difference."""


class ReadSealedText(Exception):
    """A decision read a text that cannot be opened."""


def _refuse(*_: object) -> Any:
    raise ReadSealedText


class _OutOfSight:
    """Stands for a text, and raises whatever is done with it but passing it on."""

    __slots__ = ()
    __getattribute__ = __eq__ = __ne__ = __bool__ = __str__ = __repr__ = __format__ = _refuse
    __hash__ = _refuse


class SealedWordsTracker:
    """Follows one partition of an actor through a replay."""

    def __init__(self, actor: Actor[Any]) -> None:
        self._actor = actor
        self._sessions: set[tuple[str, str]] = set()

    def copy(self) -> "SealedWordsTracker":
        """Return another one that knows the same."""
        other = SealedWordsTracker(self._actor)
        other._sessions = set(self._sessions)
        return other

    def may_matter(self, settled: Processed) -> bool:
        """Whether sealed words may matter at all, here or in the state. A cheap check; mostly they do not."""
        return bool(self._sessions) or _is_closed(settled.delivery) or any(map(_is_closed, settled.recorded))

    def needed_for(self, settled: Processed) -> bool:
        """Whether a decision needs, or may need, words that are sealed; to be asked before it is folded."""
        if any(_is_closed(own) for own in settled.recorded):
            return True
        delivery = settled.delivery
        if not isinstance(delivery, Recorded):
            return False
        message = delivery.message
        return _session_of(message) in self._sessions or (_is_closed(delivery) and self._looks(settled.before, message))

    def may_have_changed(self, message: Message) -> bool:
        """Whether a decision may rest on sealed words of another session, which its actor shares with this one."""
        if self._actor.scope is Scope.SESSION:
            return False
        return any(self._actor.scope is Scope.GLOBAL or agent == message.agent for agent, _ in self._sessions)

    def fold(self, settled: Processed) -> None:
        """Note which sealed words a processed message and its events bring into the state."""
        delivery = settled.delivery
        if isinstance(delivery, Recorded):
            session = _session_of(delivery.message)
            if _ends_taint(delivery):
                self._sessions.discard(session)
            if _is_closed(delivery) and self._keeps(settled.before, delivery.message):
                self._sessions.add(session)
        self._sessions.update(_session_of(own.message) for own in settled.recorded if _is_closed(own))

    def _looks(self, before: Any, message: Message) -> bool:
        try:
            for emitted in self._actor.decide(before, _reworded(message, _OutOfSight())):
                # Nor may it hand them on: then the words are in its own event.
                encode_event(emitted.event if isinstance(emitted, Emission) else emitted)
        except Exception:
            return True
        return False

    def _keeps(self, before: Any, message: Message) -> bool:
        try:
            one = self._actor.fold(before, message)
            return bool(one != self._actor.fold(before, _reworded(message, _OTHER_WORDS)))
        except Exception:
            # States that cannot be folded or compared may hold anything.
            return True


def _ends_taint(delivery: Recorded) -> bool:
    event = delivery.message.event
    if isinstance(event, ForgetOrdered):
        return event.what == "session"
    # An empty input has no words that could be sealed: it says nothing of whether the session's others are.
    return isinstance(event, InputReceived) and bool(event.text) and not _is_closed(delivery)


def _is_closed(delivery: Delivery) -> bool:
    return delivery.stored.seal is Seal.CLOSED


def _session_of(message: Message) -> tuple[str, str]:
    return message.agent, message.session


def _reworded(message: Message, word: Any) -> Message:
    part = personal_part(type(message.event))
    if part is None:
        return message
    event = change_personal(part, message.event, lambda _place, text: word if text == CLOSED_TEXT else text)
    return msgspec.structs.replace(message, event=event)
