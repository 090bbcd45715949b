"""Who is alive, and who leads which partition: heartbeats, availability, assignment."""
