"""What telemetry needs of the gateway: the caller's trace, and where the processes of the set tell their metrics."""
