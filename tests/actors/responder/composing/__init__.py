"""Tests of how answers are composed."""
