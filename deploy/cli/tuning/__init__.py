"""Commands that show and correct how an agent routes and thinks."""
