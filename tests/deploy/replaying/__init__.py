"""Tests of commands that decide a log again, and compare."""
