"""Tests of the log and its adapters."""
