"""Files for running neuraxis on machines of one's own, made from the configuration and the permissions.

The permissions follow from the catalogue, which lists every event with its owner, the one part of the system that
may append it, and with its readers.
"""
