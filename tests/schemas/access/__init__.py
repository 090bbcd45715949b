"""Tests of what each user of the broker may do."""
