"""The edge that accepts inputs and hands back their ends.

No actor: it decides nothing and keeps no state worth replaying. An input counts as accepted once the log has
acknowledged it; from then on it gets exactly one ``response.emitted``.
"""

from actors.gateway.client import Answered, Client
from actors.gateway.forwarded import Passed, answer_of, new_word
from actors.gateway.inputs import InvalidInput, check_name, new_input

__all__ = ["Answered", "Client", "InvalidInput", "Passed", "answer_of", "check_name", "new_input", "new_word"]
