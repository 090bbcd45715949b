"""Where events hold people's words, and texts that explain events to people."""
