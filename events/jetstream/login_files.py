"""The files that a login names: certificates, an nkey's seed, a NATS credentials file. They are read before connecting.

nats-py reads them only while it connects. For a file of another kind it then raises another library's error, or goes
on trying to connect.
"""

import re
import ssl
from pathlib import Path

from events.errors import Misconfigured

_SEED_IN_CREDENTIALS = re.compile(rb"BEGIN USER NKEY SEED[^\n]*\n([^\n]*)")
_TOKEN_IN_CREDENTIALS = re.compile(rb"BEGIN NATS USER JWT[^\n]*\n\s*[^\s-]")


def tls_context(file: str) -> ssl.SSLContext:
    """Return a context that trusts the certificate authorities in a file; raises Misconfigured."""
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as wrong:  # ssl.SSLError included
        raise Misconfigured(
            f"{file} is no file of certificates ({wrong.strerror or wrong}): name the authority's, in PEM, by --tls-ca"
        ) from wrong


def check_nkey(file: str) -> None:
    """Check that a file holds the seed of an nkey; raises Misconfigured, which never shows it."""
    _check_seed(file, _content(file), "the seed of an nkey, as `nk -gen user` writes it")


def check_credentials(file: str) -> None:
    """Check that a file is a NATS credentials file; raises Misconfigured, which shows nothing of it."""
    content, what = _content(file), "NATS credentials, as `nsc generate creds` writes them"
    seed = _SEED_IN_CREDENTIALS.search(content)
    if seed is None or not _TOKEN_IN_CREDENTIALS.search(content):
        raise Misconfigured(f"{file} does not hold {what}: name that file")
    _check_seed(file, seed[1], what)


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as wrong:
        raise Misconfigured(f"{file} cannot be read: {wrong.strerror}: correct the login that names it") from wrong


def _check_seed(file: str, seed: bytes, what: str) -> None:
    import nkeys

    try:
        nkeys.from_seed(bytearray(seed.strip())).wipe()
    except (nkeys.NkeysError, ValueError) as wrong:  # ValueError: no base 32
        raise Misconfigured(f"{file} does not hold {what}: name that file") from wrong
