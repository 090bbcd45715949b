"""What a person tells of themselves and takes back, read from their words by rule. English only."""
