"""Configuration: from files, the environment and flags to typed settings."""
