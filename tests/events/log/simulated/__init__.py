"""Tests of the simulated log itself."""
