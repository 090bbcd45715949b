"""Records what operators do over HTTP."""

from actors.gateway import Client
from schemas.vocabulary.access import Operated


class Auditing:
    """Appends to the log who does what, before it is done.

    Args:
        client: Appends to the log, through restarts of the broker.
        wait_s: Seconds that an append may take.
    """

    def __init__(self, client: Client, *, wait_s: float) -> None:
        self._client = client
        self._wait_s = wait_s

    async def __call__(self, operated: Operated) -> None:
        """Record an operation; raises LogError if it cannot be stored in time: then the operation is not done."""
        await self._client.report(operated, within=self._wait_s)
