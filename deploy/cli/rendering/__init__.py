"""Texts and tables of recorded events for people. Pure functions."""
