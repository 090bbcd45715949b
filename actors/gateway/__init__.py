"""The gateway: puts inputs, orders and reports of callers into the log, and returns the events that answer them.

It is no actor: it decides nothing and has no state to replay. An input is accepted once the log has acknowledged it.
From then on it gets exactly one ``response.emitted``.
"""

from actors.gateway.answer_pieces import AnswerPiece
from actors.gateway.answer_wait import NoEnd, UnreadableEnd, is_answer_to
from actors.gateway.exchanges import ExchangeEnd
from actors.gateway.external_events import InvalidInput
from actors.gateway.forwarded_inputs import PassedInput, answer_of
from actors.gateway.input_client import Client, Receipt
from actors.gateway.inputs import check_name, new_input
from actors.gateway.operator_orders import Order

__all__ = [
    "AnswerPiece",
    "Client",
    "ExchangeEnd",
    "InvalidInput",
    "NoEnd",
    "Order",
    "PassedInput",
    "Receipt",
    "UnreadableEnd",
    "answer_of",
    "check_name",
    "is_answer_to",
    "new_input",
]
