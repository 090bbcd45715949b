"""What operators do to a set: orders, forgetting, inputs sent again, API keys; and the deadline of a command."""
