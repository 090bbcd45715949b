"""Tests of commands that read, feed and copy logs."""
