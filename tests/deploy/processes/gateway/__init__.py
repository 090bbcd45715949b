"""Tests of the gateway's process."""
