"""Tests of the processes of a set."""
