"""Tests of how the router chooses a mode."""
