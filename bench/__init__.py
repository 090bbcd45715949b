"""Benchmarks: each measures a part of this product and a peer (another library), and prints the ratio of the two.

``storage`` measures the log and the ledger, ``decisions`` single decisions of actors, ``system`` processes at work
together, and ``quality`` how often decisions are right. ``harness`` is what they share.
"""
