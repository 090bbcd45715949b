"""The vocabulary: events and their envelope, subjects, the actor contract and the catalogue.

It imports no NATS client and reads no clock.
"""
