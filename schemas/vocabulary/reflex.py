"""Matches of known threats. Owner: ``reflex``, which searches texts for the phrases of its pattern library."""

from functools import partial
from typing import Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Unit
from schemas.unread import Unread
from schemas.wording.personal import Echo


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A signature of the pattern set ``pattern`` found in a text; ``action`` and ``confidence`` are the set's.

    ``view`` names the reading of the text it was found in. ``plain`` is the input's text as it came, and
    ``document[1]:plain`` the layer at index 1, whose role is document. There are three more kinds:

    - ``spaced``, ``leetspeak``, ``rot13``, ``reversed`` and ``split`` read the same characters otherwise.
    - ``base64``, ``hex`` and ``percent`` are the decoded runs of the text, one per line. They may be decoded again:
      ``document[1]:base64:rot13``.
    - Other names, such as ``payloads:escapes``, are the forms of disguise that were undone, the outermost first
      (``actors.contract.text.decoding``).

    ``span`` is the start and end of the match as character (code point) offsets, whatever was normalised to find it:
    into the text as it was received, or into the decoded view. For the latter ``source`` says where in the
    received text the encoded runs lie that the match was decoded from.
    """

    pattern: str
    signature: Echo
    action: str
    confidence: Unit
    view: str
    span: tuple[int, int]
    source: tuple[int, int] | None = None


class ReflexBlocked(Event, frozen=True, kw_only=True, tag="forged_id.reflex.blocked"):
    """A known threat was found; the exchange ends here.

    The first blocking match in library order decides; ``matches`` lists all, up to the bound in the settings, each
    signature in the first view that shows it. ``unread``: what was not decoded or compared because of the
    bounds, so that ``matches`` may lack some.
    """

    pattern: str
    signature: Echo
    confidence: Unit
    view: str
    span: tuple[int, int]
    matches: tuple[Match, ...]
    unread: tuple[Unread, ...] = ()


class ReflexPassed(Event, frozen=True, kw_only=True, tag="forged_id.reflex.passed"):
    """No blocking signature was found. ``flags`` are the matches that only mark an input for later stages.

    ``unread``: what was not decoded or compared because of the bounds, so that a match may have gone unseen, in encoded
    text or where longer signatures overlap with it; the coherence gate counts it against the input. ``allowed`` names
    the allowances (texts and phrases that an operator lets pass) by which a part of the input was left out before it
    was judged.
    """

    flags: tuple[Match, ...] = ()
    unread: tuple[Unread, ...] = ()
    allowed: tuple[str, ...] = ()


Writer = Literal["upstream", "model", "tool"]
"""Who wrote what is read as an answer: the model of whoever sent a forwarded input, one that we asked, or a specialist
that an ACT iteration asked."""

AnswerFault = Literal["prompt_leak", "carrying_link", "secret", "orders"]
"""What an answer can be withheld for.

``prompt_leak``: it gives the system prompt away. ``carrying_link``: it has pictures whose addresses carry words of the
prompt to their hosts. ``secret``: it has a key or a password in it. ``orders``: it has the signature of an attack,
which would be an order to whatever reads it next.
"""

SecretKind = Literal[
    "private_key", "aws_key", "github_token", "gitlab_token", "model_key", "slack_token", "google_key", "payment_key",
    "registry_token", "web_token", "prompt_secret",
]  # fmt: skip
"""Whose key it is, by its form; ``prompt_secret`` is what a system layer calls a password, key or code."""


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret in an answer, without its words.

    ``part`` is the index of the text among those of the answer; ``span`` the secret's start and end in characters, or
    those of the whole text where the secret is disguised.
    """

    kind: SecretKind
    part: int
    span: tuple[int, int]


class ReflexAnswerPassed(Event, frozen=True, kw_only=True, tag="forged_id.reflex.answer_passed"):
    """What a model or a tool wrote has no fault that withholds it.

    ``by`` says who wrote it, ``source`` is the id of the event that has it. ``leaked`` is the highest share of a system
    layer that it repeats; ``hosts`` are those to which the addresses of its pictures carry words of the prompt;
    ``matches`` are signatures of attacks in it: the view ``plain`` is its first text, ``assistant[0]`` and so on are
    its further texts. ``secrets`` are keys and passwords in it; where ``masked``, they are replaced wherever the answer
    goes. ``unread`` is as in ``reflex.passed``.
    """

    leaked: Unit = 0.0
    hosts: tuple[Echo, ...] = ()
    matches: tuple[Match, ...] = ()
    unread: tuple[Unread, ...] = ()
    by: Writer = "upstream"
    source: str = ""
    secrets: tuple[Secret, ...] = ()
    masked: bool = False


class ReflexAnswerBlocked(Event, frozen=True, kw_only=True, tag="forged_id.reflex.answer_blocked"):
    """What a model or tool wrote is withheld for the first of ``faults``; all else as in ``reflex.answer_passed``."""

    faults: tuple[AnswerFault, ...]
    leaked: Unit = 0.0
    hosts: tuple[Echo, ...] = ()
    matches: tuple[Match, ...] = ()
    unread: tuple[Unread, ...] = ()
    by: Writer = "upstream"
    source: str = ""
    secrets: tuple[Secret, ...] = ()


class ReflexLibraryChanged(Event, frozen=True, kw_only=True, tag="forged_id.reflex.library_changed"):
    """A partition of reflex uses another pattern library from here on; recorded with the first input judged by it.

    ``profile`` names its built-in part, ``imports`` what operators added to that, in library order; ``signatures``
    counts all, and ``fingerprint`` is the SHA-256 of the library's content.
    """

    profile: str
    imports: tuple[str, ...]
    signatures: int
    fingerprint: str


ReflexConfigured, ReflexFailed = own_events("reflex")


_MATCH = Match(pattern="jailbreak", signature="dan mode", action="BLOCK", confidence=0.98, view="plain", span=(7, 15))

_entry = partial(Entry, owner="reflex", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="A known threat was found in the input; the exchange ends as BLOCKED.",
        verdict="decides",
        sample=ReflexBlocked(
            pattern="jailbreak", signature="dan mode", confidence=0.98, view="plain", span=(7, 15), matches=(_MATCH,)
        ),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("pattern", "confidence", "view")),
    ),
    _entry(
        meaning="No blocking signature was found in the input.",
        verdict="passes",
        sample=ReflexPassed(unread=(Unread(layer="text", what="base64", amount=4096, why="decoding", share=0.984615),)),
    ),
    _entry(
        meaning="What a model or a tool wrote has nothing in it that it is withheld for.",
        sample=ReflexAnswerPassed(
            leaked=0.05,
            by="model",
            source="0" * 32,
            secrets=(Secret(kind="aws_key", part=0, span=(14, 34)),),
            masked=True,
        ),
        verdict="decides",
    ),
    _entry(
        meaning="What a model or a tool wrote is withheld, for what it would give away or order.",
        sample=ReflexAnswerBlocked(faults=("prompt_leak", "carrying_link"), leaked=0.9, hosts=("example.org",)),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("faults", "leaked")),
        verdict="decides",
    ),
    _entry(
        meaning="A reflex partition judges by another pattern library from here on.",
        sample=ReflexLibraryChanged(profile="standard", imports=("house-rules",), signatures=17, fingerprint="0" * 64),
    ),
    *own_entries(
        ReflexConfigured,
        ReflexFailed,
        owner="reflex",
        scope=Scope.SESSION,
        then="its exchange ends as FAILED",
    ),
)
