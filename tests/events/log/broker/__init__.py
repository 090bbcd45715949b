"""Tests of the log's client and its broker."""
