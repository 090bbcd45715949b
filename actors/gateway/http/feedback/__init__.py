"""Feedback of an application on how an exchange turned out: the endpoint, and how it becomes an event."""
