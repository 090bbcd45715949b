"""Commands that send inputs, and the one that follows alerts."""
