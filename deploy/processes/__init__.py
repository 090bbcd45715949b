"""The processes of a set: its supervisor, workers, gateway and broker."""
