"""Tests of the shell of effectors."""
