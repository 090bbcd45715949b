"""Tests of what the doctor and readiness say."""
