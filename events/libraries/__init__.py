"""Libraries that are imported without the parts that draw, since these slow down the start of a process."""
