"""The gateway's process: how it runs, and the services behind its endpoints that need the broker."""
