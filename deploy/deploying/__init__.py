"""Files for running neuraxis on machines of one's own, made from the catalogue and the configuration."""
