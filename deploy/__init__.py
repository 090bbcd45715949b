"""Running it: the command line, the supervisor, the embedded broker."""
