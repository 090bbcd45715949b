"""Reflex: stops known threats before any other stage reads them.

An input is judged by ``input.received`` alone. The text and the layers of the prompt are matched against a library of
signatures (phrases of attacks), ignoring case, accents, look-alike letters, invisible characters and white space:

- a ``BLOCK`` signature: ``reflex.blocked``, and the exchange ends;
- ``FLAG`` signatures only, or none: ``reflex.passed``, with the flags.

The library is a built-in profile plus the patterns that operators have imported (``operator.patterns_imported``). With
the first input after a change a partition records by ``reflex.library_changed`` which library it uses.

Texts are also read in other ways: spaced, leetspeak, rot13 and reversed, and decoded from base64, hex and
percent-encoding, three deep. A match names its view: ``plain`` is the input's text, ``document[1]:plain`` the layer at
index 1, whose role is document, ``document[1]:base64:rot13`` the decoded base64 runs of that layer, read in rot13.
Spans are character offsets in that text or layer as it was received, or in the decoded text.

Text of a model or a tool is read in the same way before it is delivered, remembered or put into a prompt: the answer of
another model to a forwarded input (``input.answered``), answers, plans and thoughts of our own models
(``llm.completed``), and external specialists' results (``delegate.answered``). An answer is compared with what its
model was asked (``answer_verdicts``). The verdict is ``reflex.answer_blocked`` if the answer reveals the system prompt,
would send words of the prompt to a host through a picture's URL, or contains a key or password; otherwise
``reflex.answer_passed``, with what was found. Settings say which of these findings withhold an answer
(``withheld_for``, ``secrets``), and which withhold a text from a prompt (``results_withheld_for``). Texts of the
composer (fixed sentences) and of precedents (answers recorded with earlier situations) are not read: the project and
operators wrote them, and they quote only the person's text and memories, which were read before.

The work is bounded by counted steps, never by a clock: in decoding (``encodings``) and in the candidates that are
examined (``matcher``). If a bound was reached, the verdict lists what was not read (``schemas.unread``), and the
coherence gate counts that against the input. Ordinary texts never reach a bound, whatever length the gateway accepts.
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
    evicts_cache=(PatternsImported, PatternsWithdrawn),  # ``warm`` then compiles the changed library
)
