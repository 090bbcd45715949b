"""Tests of the supervisor and its children."""
