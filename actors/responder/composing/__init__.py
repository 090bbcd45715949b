"""Builds prompts for a model, and the answers without a model: fitting, quoting, memories. Pure."""
