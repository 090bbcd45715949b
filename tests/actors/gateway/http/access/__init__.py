"""Tests of who may do what at the gateway: keys, their scopes, limits."""
