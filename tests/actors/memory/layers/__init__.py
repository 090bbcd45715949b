"""Tests of the layers of memory."""
