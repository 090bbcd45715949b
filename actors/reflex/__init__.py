"""Reflex: stops known threats before anything thinks about them (source R 2, reflex escalation).

An input is judged by ``input.received`` alone. The text and the layers of the prompt are matched against a library of
signatures, whatever their case, accents, look-alike letters, invisible characters and white space:

- a ``BLOCK`` signature: ``reflex.blocked``, and the exchange ends;
- ``FLAG`` signatures only, or none: ``reflex.passed``, with the flags.

The library is a profile that ships and what operators have imported (``operator.patterns_imported``); with the first
input after a change a partition says by ``reflex.library_changed`` which library it judges by.

Texts are also read otherwise: spaced, leetspeak, rot13 and backwards, and decoded from base64, hex and
percent-encoding, two deep. A match names its view: ``plain`` is the input's text, ``document[1]:plain`` the layer at
index 1, whose role is document, ``document[1]:base64:rot13`` what the base64 runs of that layer decode to, read in
rot13. Spans are character offsets in that text or layer as it was received, or in the decoded text.

What a model or a tool writes is read likewise, before anybody is given it, it is remembered or put into a prompt: the
answer of another's model to a forwarded input (``input.answered``), answers and plans of our own (``llm.completed``),
specialists' results (``delegate.answered``). An answer is compared with what its model was asked (``answer_leaks``):
``reflex.answer_blocked`` where it gives the system prompt away, would carry words of the prompt to a host by a
picture's address, or has a key or password in it; else ``reflex.answer_passed``, with what was found. Which of it
withholds an answer is a setting (``withheld_for``, ``secrets``); so it is for what goes into a prompt
(``results_withheld_for``). Texts of the composer and of precedents are not read: they are the project's own words and
operators', and quote nothing but what the person said and memory keeps, which was read before.

The work is bounded, in counted steps and never by a clock: in what is decoded (``encodings``) and in the candidates
that are looked at (``matcher``). Where a bound was met, the verdict lists what was not looked at (``schemas.unread``),
and the coherence gate counts it against the input. Ordinary texts never get there, however long the gateway takes them.
"""

from actors.reflex.decider import State, decide, evolve, warm
from actors.reflex.settings import ReflexSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.delegate import DelegateAnswered
from schemas.vocabulary.gateway import InputAnswered, InputReceived
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.patterns import PatternsImported, PatternsWithdrawn
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested

ACTOR = Actor(
    name="reflex",
    scope=Scope.SESSION,
    consumes=(
        InputReceived,
        InputAnswered,
        ResponseRequested,
        LlmCompleted,
        DelegateAnswered,
        ResponseEmitted,
        PatternsImported,
        PatternsWithdrawn,
        AllowanceRecorded,
        AllowanceWithdrawn,
    ),
    state_type=State,
    settings_type=ReflexSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    warm=warm,
    evicts_cache=(PatternsImported, PatternsWithdrawn),
)
