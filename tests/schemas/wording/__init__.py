"""Tests of people's words in events."""
