"""Commands for the guards and what they judge by, and ``keys``, for the gateway's API keys."""
