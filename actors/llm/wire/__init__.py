"""OpenAI's protocol on the wire: what is sent, and what endpoints really answer."""
