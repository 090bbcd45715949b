"""httpx, imported without its command line, which would import rich."""

from events.libraries.without_rich import without_rich

with without_rich():
    import httpx as httpx
