"""Tests of commands that show and order the guards."""
