"""States of actors at points of a log: read, compared, bisected."""
