"""Reflex decides: an input with a known threat ends here; any other continues.

Threats are known by *signatures*, phrases that are searched for: those of a built-in profile and those that operators
have imported. A *view* is a text as it is, or with an encoding undone.

input.received                            -> blocked or passed; library_changed before it, once after each change
input.answered, of a forwarded input,
llm.completed, delegate.answered          -> answer_blocked or answer_passed, for texts that reflex reads
                                             (``answer_verdicts``);
                                             a thought of an idle agent belongs to no exchange
response.requested                        -> nothing; the model's instructions are kept to compare its answer with
response.emitted                          -> nothing; the input's text is kept until then
operator.patterns_imported | _withdrawn   -> nothing; the library changes from the next input on
operator.allowance_recorded | _withdrawn  -> nothing; allowed text is not judged from the next input on
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import NamedTuple

import msgspec

from actors.contract.answers.leaks import reversed_and_rot13
from actors.contract.answers.prompt import Prompt
from actors.contract.text.allowances import Allowances
from actors.contract.text.decoding import decode_nested
from actors.contract.text.decoding.escapes import undo_blanks
from actors.contract.text.joined_parts import shares
from actors.reflex.answer_verdicts import GeneratedText, SignatureFindings, generated_text_in, thought_in, verdict_on
from actors.reflex.decoding.encodings import MAX_WORK, EncodedRun
from actors.reflex.imported_patterns import Imports, whole_library, with_event
from actors.reflex.joined_layers import TEXT, JoinedText, join_layers
from actors.reflex.library import Library
from actors.reflex.matcher import CANDIDATES_PER_INPUT, READINGS, Hit, Matcher, compile_library
from actors.reflex.settings import ReflexSettings
from actors.reflex.text_views import TextView, TextViews, text_views_of
from schemas.actor import Message
from schemas.event import Event
from schemas.persistent import ExpiringMap, Map
from schemas.unread import Unread, UnreadBound, UnreadKind, layers_left_out, saturating_share
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.patterns import PatternsImported, PatternsWithdrawn
from schemas.vocabulary.reflex import (
    Match,
    ReflexAnswerBlocked,
    ReflexAnswerPassed,
    ReflexBlocked,
    ReflexLibraryChanged,
    ReflexPassed,
)
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested

PLAIN = "plain"
"""The view of a text as it is."""

BLANKS = "blanks"
"""The view of a text with its escaped white space and markup undone.

A view is searched as it stands and in several rewritings (``actors.reflex.matcher.READINGS``), such
as leetspeak undone; this one only as it stands and in ``split`` (words that symbols split, or that run together)."""

_SPLIT = frozenset({"split"})

UNREAD_HALF = 64
"""This many undecoded characters count as if half of the input were not read (``saturating_share``): about the
length of an attack."""

DISGUISED_HALF = 8
"""This many characters, once decoded, that ``decode_nested`` left disguised count as if half were not read."""

MOST_UNREAD = 16
"""Most entries that an event lists of what was not read."""

_DECODED_A_TEXT, _DECODED_A_CHARACTER = 1_024, 16
"""Most decoded characters that a text can need, in all its views: a fixed number, plus a number for each character."""

_WORK_A_TEXT, _WORK_A_CHARACTER = 32_768, 96
"""Most steps that decoding a text can need: a fixed number, plus a number for each of its characters."""


_WARM_UP_TEXT = "Héllo, aGVsbG8gdGhlcmUgbXkgZnJpZW5k 0x68656c6c6f2066726965 %68%65llo"
"""A text in which every decoder finds something, so that all their tables are built."""


class _Occurrence(NamedTuple):
    """Where a signature was found: in which text of the input (``joined_layers``), and in which of its views."""

    hit: Hit
    joined: JoinedText
    view: TextView


class Asked(msgspec.Struct, frozen=True):
    """An input whose answer must be read: its text and layers (``own``), and whether it was forwarded to another model.

    ``system`` are the instructions that a model of this system gets with it.
    """

    own: Prompt
    forwarded: bool = False
    system: tuple[Layer, ...] = ()

    @property
    def prompt(self) -> Prompt:
        """The whole prompt of its model."""
        return Prompt(self.own.text, (*self.own.layers, *self.system))


class State(msgspec.Struct, frozen=True):
    """Settings, imported patterns, and operators' allowances (texts that are not judged): each input is judged alone.

    ``asked`` holds the inputs whose answers must be read, ``ended`` recently ended exchanges. ``unsaid``: the library
    was changed, and ``library_changed`` is not recorded yet.
    """

    settings: ReflexSettings = ReflexSettings()
    asked: Map[str, Asked] = Map()
    ended: ExpiringMap[bool] = ExpiringMap()
    imports: Imports = Imports()
    unsaid: bool = False
    allowances: Allowances = Allowances()


def warm(state: State) -> None:
    """Compile the library of a state, and build the tables for reading texts of any kind."""
    _warm(_library_of(state), state.settings)


@lru_cache(maxsize=16)
def _warm(library: Library, settings: ReflexSettings) -> None:
    """Warm up once for all partitions with the same library and settings."""
    matcher = compile_library(library)
    assert matcher.longest_only is not None, (
        "built now: a text with more hits than are checked needs it, and shall not wait for it"
    )
    judge(matcher, settings, InputReceived(text=_WARM_UP_TEXT))


def decide(state: State, message: Message) -> tuple[Event, ...]:
    """Judge an input, or text of a model or tool in its exchange; any other message leads to nothing."""
    if (generated := generated_text_in(message.event, message.id)) is not None:
        return _answer_judged(state, message, generated)
    if (thought := thought_in(message)) is not None:
        return (judge_answer(_matcher_of(state), state.settings, Prompt("", ()), thought),)
    if not isinstance(message.event, InputReceived):
        return ()
    received, allowed = state.allowances.judged(message.agent, message.event)
    verdict = judge(_matcher_of(state), state.settings, received)
    if allowed and isinstance(verdict, ReflexPassed):
        verdict = msgspec.structs.replace(verdict, allowed=allowed)
    return (_changed(state), verdict) if state.unsaid else (verdict,)


def evolve(state: State, message: Message) -> State:
    """Apply imported patterns and allowances; patterns that cannot be used leave the state as it is."""
    event = message.event
    if isinstance(event, InputReceived):
        return _opened(state, message, event)
    if isinstance(event, ResponseEmitted):
        return _ended(state, message)
    if isinstance(event, ResponseRequested):
        return _with_instructions(state, message, event)
    if isinstance(event, PatternsImported | PatternsWithdrawn):
        imports = with_event(state.imports, event)
        return state if imports == state.imports else msgspec.structs.replace(state, imports=imports, unsaid=True)
    if isinstance(event, AllowanceRecorded | AllowanceWithdrawn):
        allowances = state.allowances.after(message.agent, event)
        return msgspec.structs.replace(state, allowances=allowances)
    if isinstance(event, ReflexLibraryChanged) and state.unsaid:
        return msgspec.structs.replace(state, unsaid=False)
    return state


def judge(matcher: Matcher, settings: ReflexSettings, received: InputReceived) -> ReflexBlocked | ReflexPassed:
    """Return the verdict on an input under a compiled library.

    The first BLOCK signature in library order decides, wherever FLAG signatures are. If it occurs several times, its
    first position in the text counts, then in the layers.
    """
    occurrences: list[_Occurrence] = []
    unread: list[Unread] = list(layers_left_out(received.left_out))
    joined_texts = _joined_texts(settings, received)
    candidates_left = CANDIDATES_PER_INPUT
    for joined, budget in zip(
        joined_texts, _DecodingBudgets(settings, [joined.text for joined in joined_texts]), strict=True
    ):
        views = text_views_of(joined.text, settings.decoded_views, budget.characters, budget.work)
        budget.spend(views)
        unread += (_unread(joined, encoding, count, "decoding") for encoding, count in views.unread)
        undone, left = _with_disguises_undone(views.all, settings)
        if left:
            unread.append(_unread(joined, "disguised", left, "decoding", DISGUISED_HALF))
        known: set[int] = set()
        overlapped = 0
        for view in (*views.all, *undone):
            decoded_views = settings.decoded_views
            decodings = decoded_views if view.path[-1:] != (BLANKS,) else _SPLIT & {*decoded_views}
            found = matcher.find(view.text, settings.max_matches, (PLAIN, *decodings), candidates_left)
            candidates_left, overlapped = found.candidates_left, overlapped + found.unread
            # A signature counts only in the first view in which it is found.
            occurrences += [_Occurrence(hit, joined, view) for hit in found.hits if hit.rank not in known]
            known.update(hit.rank for hit in found.hits)
        if overlapped:  # letters where overlapping signatures may be missed: the hits that may be checked are used up
            unread.append(_unread(joined, "overlaps", overlapped, "candidates"))
    # The sort is stable: for one signature, parts and views keep their order, and positions in a view stay sorted.
    occurrences.sort(key=lambda occurrence: occurrence.hit.rank)
    decisive = next(
        (occurrence for occurrence in occurrences if matcher.signatures[occurrence.hit.rank][0].action == "BLOCK"), None
    )
    matches = tuple(_match(matcher, occurrence) for occurrence in _bounded(occurrences, settings.max_matches, decisive))
    if decisive is None:
        return ReflexPassed(flags=matches, unread=_heaviest_first(unread))
    deciding = _match(matcher, decisive)
    return ReflexBlocked(
        pattern=deciding.pattern,
        signature=deciding.signature,
        confidence=deciding.confidence,
        view=deciding.view,
        span=deciding.span,
        matches=matches,
        unread=_heaviest_first(unread),
    )


def judge_answer(
    matcher: Matcher, settings: ReflexSettings, prompt: Prompt, generated: GeneratedText
) -> ReflexAnswerBlocked | ReflexAnswerPassed:
    """Return the verdict on text of a model or tool, given what it was asked."""
    roles = tuple(dict.fromkeys((*settings.scanned_layers, "assistant", "tool")))
    found = judge(matcher, msgspec.structs.replace(settings, scanned_layers=roles), generated.as_input)
    matches = found.matches if isinstance(found, ReflexBlocked) else found.flags
    signatures = SignatureFindings(matches, isinstance(found, ReflexBlocked), found.unread)
    views = ((part, view) for part, text in enumerate(generated.texts) for view in _decoded_views(text, settings))
    return verdict_on(generated, prompt, settings, signatures, views)


def _decoded_views(text: str, settings: ReflexSettings) -> Iterator[str]:
    # Reversed and rot13 are included: the matcher searches for signatures in them.
    yield from (view.text for view in text_views_of(text, settings.decoded_views, settings.max_decoded).all[1:])
    yield from reversed_and_rot13(text)


def _answer_judged(state: State, message: Message, generated: GeneratedText) -> tuple[Event, ...]:
    asked = state.asked.get(message.exchange)
    if asked is None or asked.forwarded != (generated.by == "upstream"):
        return ()
    return (judge_answer(_matcher_of(state), state.settings, asked.prompt, generated),)


def _opened(state: State, message: Message, received: InputReceived) -> State:
    exchange = message.exchange
    # An input that is only to be checked gets no answer.
    if received.purpose == "check" or not exchange or exchange in state.asked or state.ended.get(exchange):
        return state
    asked = Asked(Prompt(received.text, received.layers), received.purpose == "forward")
    return msgspec.structs.replace(state, asked=state.asked.set(exchange, asked))


def _with_instructions(state: State, message: Message, request: ResponseRequested) -> State:
    """Keep the instructions that our model gets: they must not be revealed to the reader of its answer."""
    asked = state.asked.get(message.exchange)
    if asked is None:
        return state
    system = tuple(
        Layer(role="system", content=each.content) for each in request.call.messages if each.role == "system"
    )
    own = Asked(asked.own, asked.forwarded, system)
    return msgspec.structs.replace(state, asked=state.asked.set(message.exchange, own))


def _ended(state: State, message: Message) -> State:
    if message.exchange not in state.asked:
        return state
    lifetime_ns = state.settings.ended_lifetime_ms * 1_000_000
    return msgspec.structs.replace(
        state,
        asked=state.asked.delete(message.exchange),
        ended=state.ended.set(message.exchange, True, message.time_ns, lifetime_ns),
    )


class _DecodingBudgets:
    """The decoding budgets of the joined texts of an input: shares, so that no text uses up what another needs.

    Shares are in proportion to the most that a text of that length can need. What a text leaves goes to the next ones.
    It is an iterator that yields itself: ``characters`` and ``work`` are those of the current text.
    """

    def __init__(self, settings: ReflexSettings, texts: Sequence[str]) -> None:
        self._characters = iter(
            shares([_DECODED_A_TEXT + _DECODED_A_CHARACTER * len(text) for text in texts], settings.max_decoded)
        )
        self._work = iter(shares([_WORK_A_TEXT + _WORK_A_CHARACTER * len(text) for text in texts], MAX_WORK))
        self.characters = self.work = 0

    def __iter__(self) -> "_DecodingBudgets":
        return self

    def __next__(self) -> "_DecodingBudgets":
        self.characters += next(self._characters)
        self.work += next(self._work)
        return self

    def spend(self, views: TextViews) -> None:
        """Subtract what the views of the current text used."""
        self.characters, self.work = self.characters - views.decoded, self.work - views.work


def _with_disguises_undone(views: Sequence[TextView], settings: ReflexSettings) -> tuple[tuple[TextView, ...], int]:
    """Return the views of a text with its rarer disguises undone, and how many characters were not decoded.

    ``views`` are those of its encoded runs, and first the text itself. White space that is escaped is undone in each of
    all these.
    """
    if "disguised" not in settings.decoded_views:
        return (), 0
    whole = views[0]
    found, left = decode_nested(whole.text)
    undone = tuple(_view(each.path, each.text, whole) for each in found)
    blanks = ((view, undo_blanks(view.text)) for view in (*views, *undone))
    return (
        *undone,
        *(_view((*view.path, BLANKS), text, view) for view, text in blanks if text not in ("", view.text)),
    ), left


def _view(path: tuple[str, ...], text: str, parent: TextView) -> TextView:
    """Return a view that is the whole text of its parent, decoded."""
    return TextView(path, text, (EncodedRun(0, len(parent.text), text),), parent)


def _unread(joined: JoinedText, what: UnreadKind, amount: int, why: UnreadBound, half: int = UNREAD_HALF) -> Unread:
    return Unread(layer=joined.name, what=what, amount=amount, why=why, share=saturating_share(amount, half))


def _heaviest_first(unread: Sequence[Unread]) -> tuple[Unread, ...]:
    """Return what was not read, the heaviest first, as many entries as an event lists."""
    return tuple(sorted(unread, key=lambda each: (-each.share, -each.amount))[:MOST_UNREAD])


def _library_of(state: State) -> Library:
    return whole_library(state.settings.profile, state.imports)


def _matcher_of(state: State) -> Matcher:
    return compile_library(_library_of(state))


def _changed(state: State) -> ReflexLibraryChanged:
    library = _library_of(state)
    return ReflexLibraryChanged(
        profile=state.settings.profile,
        imports=state.imports.names(),
        signatures=len(_matcher_of(state).signatures),
        fingerprint=library.fingerprint,
    )


def _joined_texts(settings: ReflexSettings, received: InputReceived) -> tuple[JoinedText, ...]:
    """Return the input's text, then the scanned layers, as the joined parts that are read."""
    layers = [
        (f"{layer.role}[{index}]", layer.content)
        for index, layer in enumerate(received.layers)
        if layer.role in settings.scanned_layers
    ]
    return (JoinedText(received.text, (TEXT,), (0,)), *join_layers(layers))


def _match(matcher: Matcher, occurrence: _Occurrence) -> Match:
    hit, view = occurrence.hit, occurrence.view
    pattern, signature = matcher.signatures[hit.rank]
    reading = READINGS[hit.reading]
    name = ":".join((*view.path, reading) if reading != PLAIN or not view.path else view.path)
    source = view.source(hit.start, hit.end)
    part, begin = occurrence.joined.part_at(hit.start if source is None else source[0])
    offset = begin if source is None else 0
    return Match(
        pattern=pattern.name,
        signature=signature.text,
        action=pattern.action,
        confidence=pattern.confidence,
        view=name if part == TEXT else f"{part}:{name}",
        span=(hit.start - offset, hit.end - offset),
        source=None if source is None else (max(0, source[0] - begin), source[1] - begin),
    )


def _bounded(occurrences: list[_Occurrence], limit: int, decisive: _Occurrence | None) -> list[_Occurrence]:
    """Keep ``limit`` positions in order: the decisive one, then the first of every signature, then repetitions."""
    if len(occurrences) <= limit:
        return occurrences
    seen: Counter[int] = Counter()
    precedence: list[tuple[int, int]] = []
    for number, occurrence in enumerate(occurrences):
        rank = occurrence.hit.rank
        precedence.append((-1 if occurrence is decisive else seen[rank], number))
        seen[rank] += 1
    return [occurrences[number] for number in sorted(number for _, number in nsmallest(limit, precedence))]
