"""Commands that read a log: decisions explained, made again and compared."""
