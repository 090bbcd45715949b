"""Processes at work together through a broker: exchanges, requests passed on, plain hops, and the dashboard."""
