"""Weeks of conversations in seconds: the real deciders in virtual time, no broker and no clock. Deterministic.

``world`` joins the deciders by a stream in memory, ``people`` are those who talk to the agent, ``living`` lets them do
so day after day, ``plants`` puts something wrong into their world, ``report`` tells what became of it and ``plot``
draws it.
"""
