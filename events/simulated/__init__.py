"""The log in memory, with JetStream's rules and every way the network, the broker and the process can fail.

For the simulation of whole systems and for tests; never for production. All chance comes from one seed, all time from
the running event loop, so a world run twice is the same world.

``SimulatedStream`` is the broker and what it stores; it survives its clients. A worker holds a ``SimulatedConnection``
and, over it, a ``SimulatedLog``, ``SimulatedSnapshots`` and ``SimulatedMembership``.
"""

from events.simulated.connection import Killed, SimulatedConnection
from events.simulated.faults import CALM, STORMY, Faults, Incident
from events.simulated.keyvalue import SimulatedMembership, SimulatedSnapshots
from events.simulated.log import SimulatedLog, SimulatedTail
from events.simulated.stream import SimulatedStream

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
