"""Errors of the vocabulary: a stored message that cannot be understood."""


class VocabularyError(ValueError):
    """Base of the vocabulary's errors; ``code`` is stable and is what events record."""

    code = "vocabulary"


class UndecodableEvent(VocabularyError):
    """A message whose headers or body do not form the event its subject promises."""

    code = "undecodable"


class UnknownVersion(VocabularyError):
    """An event of a version newer than this release knows."""

    code = "unknown_version"


class UnknownTopic(VocabularyError):
    """A subject that the catalogue does not hold."""

    code = "unknown_topic"


UNREADABLE = frozenset(error.code for error in (UndecodableEvent, UnknownVersion, UnknownTopic))
"""Codes of the reasons for which no actor can read a stored message."""
