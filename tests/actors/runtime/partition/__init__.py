"""Tests of one partition of an actor: deciding, appending, recovering."""
