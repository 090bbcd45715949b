"""A client of Neuraxis for applications: checks, answers, feedback, events and alerts, over HTTP and NATS.

``Client``, ``AsyncClient``  the calls              ``models``, ``events``  requests, answers and events as values
``neuraxis.nats``            events over NATS       ``errors``              the exceptions
"""

from neuraxis.async_client import AsyncClient
from neuraxis.client import Client
from neuraxis.errors import (
    BadAnswer,
    BadInput,
    Forbidden,
    Misconfigured,
    NeuraxisError,
    NotFound,
    NotReachable,
    RateLimited,
    Refused,
    ServerFailed,
    Unanswered,
    Unauthorized,
    Unavailable,
)
from neuraxis.events import Alert, Event
from neuraxis.models import Answer, Decision, Exchange, Explanation, Feedback, Input, Layer, Page, Verdict

__version__ = "0.1.0"

__all__ = [
    "Alert",
    "Answer",
    "AsyncClient",
    "BadAnswer",
    "BadInput",
    "Client",
    "Decision",
    "Event",
    "Exchange",
    "Explanation",
    "Feedback",
    "Forbidden",
    "Input",
    "Layer",
    "Misconfigured",
    "NeuraxisError",
    "NotFound",
    "NotReachable",
    "Page",
    "RateLimited",
    "Refused",
    "ServerFailed",
    "Unanswered",
    "Unauthorized",
    "Unavailable",
    "Verdict",
]
