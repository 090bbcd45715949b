"""The gateway's part in telemetry: the caller's trace, and the addresses at which processes serve their metrics."""
