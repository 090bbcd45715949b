"""Decisions made again from a log, with the actors that made them."""
