"""Tests of commands that show and order single actors."""
