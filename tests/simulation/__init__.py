"""Whole worlds in virtual time, decided by a seed."""
