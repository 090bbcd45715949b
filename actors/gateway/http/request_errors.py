"""Why a request has no proper answer: its event is not stored, or not answered. Any of the services may raise these."""


class NotAccepted(Exception):
    """An event was not stored in time. The message says why, or that it may still be stored, and what to do."""


class NotReady(Exception):
    """This gateway has started, but does not serve yet; the message says what to do."""


class Unanswered(Exception):
    """An event is stored but was not answered in time; the message says where it is and what to do."""


class NoWorker(Exception):
    """An event is stored but no worker runs that would answer it; the message says where it is and what to do."""


class Undecided(Exception):
    """An event was stored, but what was decided about it cannot be told; the message says where to look."""
