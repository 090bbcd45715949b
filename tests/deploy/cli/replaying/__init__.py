"""Tests of commands that decide a log again, and of what is shown of a decision."""
