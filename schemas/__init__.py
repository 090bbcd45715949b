"""The vocabulary: events and their envelope, subjects, the actor contract and the catalogue.

Knows nothing of NATS clients or clocks.
"""
