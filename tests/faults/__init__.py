"""Faults on real sets of processes, judged from the log afterwards."""

import pytest

# Without this a broken promise fails as a bare AssertionError, which does not say which promise.
pytest.register_assert_rewrite("tests.faults.rig")
