"""Tests of running workers that take up what is new."""
