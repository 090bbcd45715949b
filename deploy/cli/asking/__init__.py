"""Commands that send inputs, and that listen."""
