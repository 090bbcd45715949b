"""Settings of reflex."""

from typing import Annotated, Literal

import msgspec

from actors.reflex.library import Profile
from schemas.event import Milliseconds
from schemas.settings.measured_settings import Budget
from schemas.vocabulary.gateway import Role
from schemas.vocabulary.reflex import AnswerFault

Decoding = Literal["spaced", "leetspeak", "rot13", "reversed", "split", "base64", "hex", "percent", "disguised"]
"""A reading of a text besides the plain one; see ``ReflexSettings.decoded_views``."""


class ReflexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What reflex decides with. A signature is a phrase of attacks that it searches for.

    Attributes:
        profile: The built-in pattern library. ``standard``: our own, in several languages; ``seed``: 16 signatures
            in four small sets. Imports of operators are added to it.
        scanned_layers: The roles whose layers are scanned in addition to the input's text. Without ``system``: an
            operator's prompt that quotes attacks in order to forbid them would block every exchange.
        decoded_views: The readings, besides the plain one, in which signatures are searched for. ``split``: words split
            by symbols or run together. ``disguised``: what ``actors.contract.text.decoding`` undoes, in the forms that
            the others miss.
        max_decoded: Most characters decoded over all views of an input, 0 to 1,000,000, in equal shares for its texts
            and the encoded runs in them. They are searched like the text, so this limits the time: about 10 ms.
        max_matches: Most matches that an event lists, 1 to 1,000: this limits it when a long text repeats them.
        withheld_for: The findings for which a model's answer is withheld; other findings are only recorded.
            ``prompt_leak``: it holds much of the system prompt; ``carrying_link``: a picture's URL in it carries words
            of the prompt to a host; ``secret``: it has a key or password; ``orders``: a blocking signature. Without
            ``orders``: an answer that explains an attack quotes it.
        results_withheld_for: The findings for which a text is kept out of prompts and memory: a tool's result, or a
            model's plan or thought.
        secrets: What happens to an answer with keys or passwords: it is withheld, they are masked in it, or they are
            only recorded. With "mask", answers to forwarded inputs are withheld, since they are delivered unchanged.
            With "withhold", tools' results are masked.
        leak_share: A system layer counts as revealed if at least this share of it is in an answer.
        ended_lifetime_ms: Least time for which a repeated input of an ended exchange is recognised.
        latency_budget_ms: Time for a decision; the process that makes it compares measured times with it. No decision
            depends on it.
    """

    profile: Profile = "standard"
    scanned_layers: tuple[Role, ...] = ("user", "assistant", "tool", "document")
    decoded_views: tuple[Decoding, ...] = (
        "spaced", "leetspeak", "rot13", "reversed", "split", "base64", "hex", "percent", "disguised",
    )  # fmt: skip
    max_decoded: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 524_288
    max_matches: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 32
    withheld_for: tuple[AnswerFault, ...] = ("prompt_leak", "carrying_link")
    results_withheld_for: tuple[AnswerFault, ...] = ("orders",)
    secrets: Literal["withhold", "mask", "record"] = "withhold"
    leak_share: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 0.6
    ended_lifetime_ms: Milliseconds = 600 * 1000
    latency_budget_ms: Budget = 10.0

    @property
    def faults(self) -> tuple[AnswerFault, ...]:
        """The findings for which the answer to a forwarded input is withheld."""
        return self.withheld_for if self.secrets == "record" else tuple(dict.fromkeys((*self.withheld_for, "secret")))
