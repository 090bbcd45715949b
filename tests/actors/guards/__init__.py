"""Tests of the guards together, on the way of one input."""
