"""Who lives, and who leads what: heartbeats, attendance, assignment."""
