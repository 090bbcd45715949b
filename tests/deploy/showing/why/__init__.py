"""Tests of why an exchange ended as it did, as people are told."""
