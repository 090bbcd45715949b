"""Commands for the guards and what they judge by, and for those who may use the gateway."""
