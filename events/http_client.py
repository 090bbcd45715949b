"""httpx, without the command line that it loads where it can: that would bring rich along."""

from events.without_rich import without_rich

with without_rich():
    import httpx as httpx
