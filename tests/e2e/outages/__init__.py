"""End-to-end tests with a broker or disk that fails."""
