"""What goes into a prompt and into an answer without a model: fitting, quoting, memories. Pure."""
