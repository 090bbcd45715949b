"""The endpoints for loops (reflection guardrails: whether a deliberation runs again) and for ticks of engines."""
