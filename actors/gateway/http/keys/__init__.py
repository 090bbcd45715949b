"""API keys: what each may do and for which agent; stored as hashes in a file, looked up by a request's header.

``key``   a key as it is stored   ``file``   the file of keys   ``api_keys``   the valid keys   ``rate``   rate limits
"""

from actors.gateway.http.keys.api_keys import ApiKeys, BadKeys, api_keys_for, is_loopback
from actors.gateway.http.keys.key import ALL_SCOPES, ANYBODY, Key, Scope

__all__ = ["ALL_SCOPES", "ANYBODY", "ApiKeys", "BadKeys", "Key", "Scope", "api_keys_for", "is_loopback"]
