"""Commands that show an agent's background work and routing corrections, simulate them, and train weights."""
