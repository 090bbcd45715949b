"""Reading what comes from outside: strictly, within limits, with an error that says what to do."""
