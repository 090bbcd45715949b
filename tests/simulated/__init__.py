"""The log in memory, with JetStream's rules and every way the network, the broker and the process can fail.

For the simulation of whole systems and for tests; never for production. All chance comes from one seed, all time from
the running event loop, so a world run twice is the same world.

``SimulatedStream`` is the broker and what it stores; it survives its clients. A worker holds a ``SimulatedConnection``
and, over it, a ``SimulatedLog``, ``SimulatedSnapshots`` and ``SimulatedMembership``.
"""

from tests.simulated.connection import Killed, SimulatedConnection
from tests.simulated.faults import CALM, STORMY, Faults, Incident
from tests.simulated.keyvalue import SimulatedMembership, SimulatedSnapshots
from tests.simulated.log import SimulatedLog, SimulatedTail
from tests.simulated.stream import SimulatedStream

__all__ = [
    "CALM",
    "STORMY",
    "Faults",
    "Incident",
    "Killed",
    "SimulatedConnection",
    "SimulatedLog",
    "SimulatedMembership",
    "SimulatedSnapshots",
    "SimulatedStream",
    "SimulatedTail",
]
