"""How a set is run: the command line, its configuration, the processes and the embedded broker."""
