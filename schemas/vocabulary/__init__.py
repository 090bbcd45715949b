"""The events: one module for each owner. Each module lists its subjects in ``ENTRIES``; the catalogue finds them.

Every number is explained in docs/decisions-explained.md, those of self-regulation in docs/self-regulation.md.
"""
