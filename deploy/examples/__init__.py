"""Example programs that run beside a set, to copy from."""
