"""Tests of commands that show and tune what agents learn."""
