"""The layers of memory.

Facts that people stated, episodes (exchanges as they are remembered), concepts (terms that occurred in episodes),
sessions with their latest turns, gists (summaries of exchanges in one line), and thoughts of an idle agent.
"""
