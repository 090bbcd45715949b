"""What operators have done: orders, overrides, forgetting, imports and copies."""
