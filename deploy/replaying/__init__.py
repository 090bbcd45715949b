"""Replays and what-ifs that need the actors: their deciders make recorded decisions again."""
