"""Commands that send inputs, and ``alerts``, which prints alerts as they come."""
