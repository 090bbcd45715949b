"""The session of orders that belong to an agent, and to none of its sessions."""

FACTS_SESSION = "operator"
"""The session that orders to forget facts are addressed to. It is never forgotten: its orders name the facts."""
