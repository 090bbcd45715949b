"""Feedback of an application on an exchange: the endpoint, and the event that it becomes."""
