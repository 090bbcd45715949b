"""Settings of reflex."""

from typing import Annotated, Literal

import msgspec

from actors.reflex.library import Profile
from schemas.event import Milliseconds
from schemas.settings.measured_settings import Budget
from schemas.vocabulary.gateway import Role
from schemas.vocabulary.reflex import AnswerFault

Decoding = Literal["spaced", "leetspeak", "rot13", "reversed", "split", "base64", "hex", "percent", "disguised"]


class ReflexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What reflex decides with.

    Attributes:
        profile: The pattern library that ships. ``standard``: ours, in several languages; ``seed``: the 16 signatures
            in four sets of source R 2.1. What operators import comes on top.
        scanned_layers: The roles whose layers are scanned besides the input's text. Without ``system``: an operator's
            prompt that quotes attacks in order to forbid them would block every exchange.
        decoded_views: The readings besides the plain one in which a signature is found. ``split``: words split by
            signs or run together. ``disguised``: what ``actors.contract.text.decoding`` undoes, in the forms that
            the others miss.
        max_decoded: Characters decoded at most over all views of an input, 0 to 1,000,000, in equal shares over
            its parts and the runs in them. They are searched as the text is, so that this bounds the time: some 10 ms.
        max_matches: Matches an event lists at most, 1 to 1,000: what bounds it when a long text repeats them.
        withheld_for: What a model's answer is withheld for; all else that is found in it is recorded. Without
            ``orders``: an answer that explains an attack quotes it.
        results_withheld_for: The same for what goes into a prompt or into memory: tools' results, a model's plans.
        secrets: What becomes of keys and passwords in an answer: it is withheld for them, they are masked in it, or
            they are recorded only. Answers to forwarded inputs, which are delivered as they are, are withheld where
            others are masked; in tools' results they are masked where answers are withheld.
        leak_share: Share of a system layer in an answer from which it has been given away.
        ended_lifetime_ms: How long at least a repeated input of an ended exchange is recognised.
        latency_budget_ms: What the shell holds measured times against (source R 7); no decision depends on it.
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
        """What the answer to a forwarded input is withheld for."""
        return self.withheld_for if self.secrets == "record" else tuple(dict.fromkeys((*self.withheld_for, "secret")))
