"""Runs effectors (what calls models and other outside services): performs requests, stores each answer exactly once."""
