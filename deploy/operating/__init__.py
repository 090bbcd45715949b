"""What operators do to a set: orders, overrides, forgetting, imports, exports and backups."""
