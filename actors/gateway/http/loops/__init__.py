"""The endpoints of source G, reflection guardrails, and of ticks."""
