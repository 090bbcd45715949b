"""The endpoints that serve the dashboard's files."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from actors.gateway.http.dashboard import PAGE
from actors.gateway.http.scopes import PUBLIC

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Not cached: a page of one release and a script of another do not work together.
    "Cache-Control": "no-cache",
}
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_INDEX = "index.html"


@cache
def _pages() -> Mapping[str, tuple[str, bytes]]:
    """Return the files by name, with their media types."""
    found = (each for each in files(__package__).joinpath("static").iterdir() if each.is_file())
    return {each.name: (_KINDS[f".{each.name.rpartition('.')[2]}"], each.read_bytes()) for each in found}


@get(PAGE, include_in_schema=False, opt={PUBLIC: True})
async def show_dashboard() -> Response[bytes]:
    """Show what the set does, to a person."""
    return _file(_INDEX)


@get(f"{PAGE}/{{name:str}}", include_in_schema=False, opt={PUBLIC: True})
async def show_file(name: FromPath[str]) -> Response[bytes]:
    """Return a file that the page needs."""
    return _file(name)


def _file(name: str) -> Response[bytes]:
    if name not in _pages():
        raise NotFoundException
    kind, content = _pages()[name]
    return Response(content, media_type=kind, headers=_HEADERS)


ENDPOINTS = (show_dashboard, show_file)
