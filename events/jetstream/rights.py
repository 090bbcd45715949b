"""What a connection's login may publish and subscribe to, as the server itself reports it."""

import msgspec

from events.errors import LogError
from events.jetstream.connection import Connection
from schemas.permissions import OWN_RIGHTS

_DEADLINE = 2.0  # seconds


class SubjectRights(msgspec.Struct, frozen=True):
    """Subjects that are allowed (none named: all) and denied; a subject that is both is denied."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def include(self, subject: str) -> bool:
        """Whether all subjects that ``subject`` matches (it may have wildcards) are allowed."""
        allowed = not self.allow or any(covers(pattern, subject) for pattern in self.allow)
        return allowed and not any(overlap(pattern, subject) for pattern in self.deny)


class LoginRights(msgspec.Struct, frozen=True):
    """A login's rights.

    ``responses``: how many answers to a request it may send, and for how long; None where no such right is named.
    """

    publish: SubjectRights = SubjectRights()
    subscribe: SubjectRights = SubjectRights()
    responses: dict[str, int] | None = None

    @property
    def responds(self) -> bool:
        """Whether it may answer the requests that it receives."""
        return self.responses is not None or not self.publish.allow


class WhoAmI(msgspec.Struct, frozen=True):
    """A server's answer about a login: its name (the public key of an nkey), its account, and its rights."""

    user: str = ""
    account: str = ""
    permissions: LoginRights = LoginRights()


class _Answer(msgspec.Struct):
    data: WhoAmI = WhoAmI()


async def ask_rights(connection: Connection) -> WhoAmI | None:
    """Ask the server who we are and what we may do; None where it does not say, or we may not ask."""
    try:
        answer = await connection.request(OWN_RIGHTS, deadline=_DEADLINE)
        return msgspec.json.decode(answer.data, type=_Answer).data
    except (LogError, msgspec.DecodeError):
        return None


def covers(pattern: str, subject: str) -> bool:
    """Whether ``pattern`` matches every subject that ``subject``, which may have wildcards itself, matches."""
    wanted = subject.split(".")
    tokens = pattern.split(".")
    for index, token in enumerate(tokens):
        if token == ">":
            return len(wanted) > index
        if index >= len(wanted) or wanted[index] == ">":
            return False
        if token not in ("*", wanted[index]):
            return False
    return len(tokens) == len(wanted)


def overlap(one: str, other: str) -> bool:
    """Whether some subject matches both patterns."""
    left, right = one.split("."), other.split(".")
    for index in range(max(len(left), len(right))):
        if index >= len(left) or index >= len(right):
            return False
        if ">" in (left[index], right[index]):
            return True
        if "*" not in (left[index], right[index]) and left[index] != right[index]:
            return False
    return True
