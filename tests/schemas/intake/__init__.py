"""Tests of how what comes from outside is read."""
