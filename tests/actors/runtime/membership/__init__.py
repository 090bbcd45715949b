"""Tests of who lives, and who leads what."""
