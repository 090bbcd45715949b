"""Commands that show how an agent's routing is tuned, that simulate it, and that train weights."""
