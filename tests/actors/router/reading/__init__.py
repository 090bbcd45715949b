"""Tests of what the router reads from texts."""
