"""httpx, without the command line that it loads where it can: that would bring rich along."""

from events.undrawn import undrawn

with undrawn():
    import httpx as httpx
