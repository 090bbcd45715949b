"""Known-threat matching. Owner: ``reflex``."""

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Severity, own_entries
from schemas.event import Configured, Event, Failed, Unit
from schemas.unread import Unread
from schemas.wording.personal import Echo


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A signature found in a text.

    ``view`` names the reading of the text it was found in: ``plain`` is the input's text, ``document[1]:plain`` the
    layer at index 1, whose role is document. ``spaced``, ``leetspeak``, ``rot13``, ``reversed`` and ``split`` read the
    same characters otherwise; ``base64``, ``hex`` and ``percent`` are the decoded runs of the text, one a line, and may
    be read further: ``document[1]:base64:rot13``. Other names, such as ``payloads:escapes``, are the forms of disguise
    that were undone, the outermost first (``actors.text.decoding``).

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
    signature in the first view that shows it. ``unread``: what would have had to be decoded or compared beyond the
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

    ``unread``: what would have had to be decoded or compared beyond the bounds, so that a match may have gone unseen,
    in encoded text or where longer signatures overlap with it; the coherence gate counts it against the input.
    ``allowed`` names the operators' allowances that took something of the input out before it was judged.
    """

    flags: tuple[Match, ...] = ()
    unread: tuple[Unread, ...] = ()
    allowed: tuple[str, ...] = ()


class ReflexLibraryChanged(Event, frozen=True, kw_only=True, tag="forged_id.reflex.library_changed"):
    """A partition of reflex judges by another library from here on; said with the first input it judges by it.

    ``imports`` are the names of what operators added to the ``profile``, in library order; ``signatures`` counts all,
    and ``fingerprint`` is the SHA-256 of the library's content.
    """

    profile: str
    imports: tuple[str, ...]
    signatures: int
    fingerprint: str


class ReflexConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.reflex.configured"):
    """The settings of a reflex partition."""


class ReflexFailed(Failed, frozen=True, kw_only=True, tag="forged_id.reflex.failed"):
    """A message that reflex could not decide."""


_MATCH = Match(pattern="jailbreak", signature="dan mode", action="BLOCK", confidence=0.98, view="plain", span=(7, 15))

ENTRIES = (
    Entry(
        event=ReflexBlocked,
        owner="reflex",
        scope=Scope.SESSION,
        meaning="A known threat was found in the input; the exchange ends as BLOCKED.",
        sample=ReflexBlocked(
            pattern="jailbreak", signature="dan mode", confidence=0.98, view="plain", span=(7, 15), matches=(_MATCH,)
        ),
        severity=Severity.WARNING,
    ),
    Entry(
        event=ReflexPassed,
        owner="reflex",
        scope=Scope.SESSION,
        meaning="No blocking signature was found in the input.",
        sample=ReflexPassed(unread=(Unread(layer="text", what="base64", amount=4096, why="decoding", share=0.984615),)),
    ),
    Entry(
        event=ReflexLibraryChanged,
        owner="reflex",
        scope=Scope.SESSION,
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
