"""OpenAI's protocol on the wire: builds requests, and parses what endpoints really answer."""
