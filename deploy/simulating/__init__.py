"""Simulation of weeks of conversations in seconds: the real deciders in virtual time, without a broker. Deterministic.

- ``world`` connects the deciders by a stream in memory;
- ``simulated_people`` simulates the people who talk to the agent;
- ``simulation`` runs the conversations, day after day;
- ``planted_faults`` lists the faults that can be planted;
- ``report`` sums up what happened, and ``plot`` draws it.
"""
