"""API keys: what each may do and for which agent; stored as hashes in a file, looked up by a request's header.

``key``   a key as it is stored    ``file``   the file of keys    ``keyring``   the valid keys    ``rate``   rate limits
"""

from actors.gateway.http.keys.key import ALL_SCOPES, ANYBODY, Key, Scope
from actors.gateway.http.keys.keyring import BadKeys, Keyring, is_loopback, keyring_for

__all__ = ["ALL_SCOPES", "ANYBODY", "BadKeys", "Key", "Keyring", "Scope", "is_loopback", "keyring_for"]
