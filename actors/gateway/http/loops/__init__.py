"""The endpoints for loops (reflection guardrails: whether a deliberation runs again) and for ticks.

A tick is the state of an agent at one step of an external engine.
"""
