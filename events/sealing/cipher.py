"""A session's key, and sealing texts with it: AES-256-GCM under a nonce derived from what is sealed.

Sealing the same text at the same position (a JSON Pointer) of the same event twice must give the same bytes, since a
decision made twice must give the same event. A random nonce would break that. So the nonce is a keyed hash of the whole
input: it differs whenever the input differs (except with a chance of one in 2^96 for a pair), and reveals nothing but
equality.
"""

import base64
import hmac
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SECRET_BYTES = 32
"""Bytes of a session's secret."""

_NONCE_BYTES = 12  # as AES-GCM recommends


class SealBroken(ValueError):
    """A sealed text was changed, or was sealed with another key, at another position or for another event."""


def new_secret() -> bytes:
    """Return a fresh secret, for a key."""
    return secrets.token_bytes(SECRET_BYTES)


class SessionKey:
    """The key of a session's texts; derived from its secret of 32 bytes.

    Attributes:
        id: Names the key without revealing anything of it (16 hex digits).
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"a session's secret has {SECRET_BYTES} bytes, not {len(secret)}")
        self.id = _derived(secret, b"id")[:8].hex()
        self._nonce_key = _derived(secret, b"nonces")
        self._cipher = AESGCM(_derived(secret, b"texts"))

    def __repr__(self) -> str:
        return f"SessionKey({self.id})"

    def seal(self, event: str, pointer: str, text: str) -> str:
        """Return a text sealed for its position in an event, in URL-safe base64 (RFC 4648, section 5)."""
        where, plain = _associated_data(event, pointer), text.encode()
        nonce = hmac.digest(self._nonce_key, len(where).to_bytes(4, "big") + where + plain, "sha256")[:_NONCE_BYTES]
        return base64.urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, plain, where)).decode("ascii")

    def open(self, event: str, pointer: str, sealed: str) -> str:
        """Return the text that was sealed; raises SealBroken if key, event or position do not match."""
        try:
            packed = base64.urlsafe_b64decode(sealed)
            nonce, rest = packed[:_NONCE_BYTES], packed[_NONCE_BYTES:]
            return self._cipher.decrypt(nonce, rest, _associated_data(event, pointer)).decode()
        except ValueError as wrong:  # no base64, or too short
            raise SealBroken(f"{pointer}: no sealed text: {wrong}") from wrong
        except InvalidTag:
            raise SealBroken(f"{pointer}: it was changed, moved, or sealed with another key") from None


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.digest(secret, b"neuraxis session key 1: " + purpose, "sha256")


def _associated_data(event: str, pointer: str) -> bytes:
    return f"{event}\n{pointer}".encode()
