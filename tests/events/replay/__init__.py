"""Tests of replay, verification and explanation."""
