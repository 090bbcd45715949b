"""What these tests are written with: the project's own way to test deciders, which actors of others use as well."""

from actors.testing import HERE, MS, START_NS, Address, Partition, configured, placed

__all__ = ["HERE", "MS", "START_NS", "Address", "Partition", "configured", "placed"]
