"""Tests of what a person tells and takes back."""
