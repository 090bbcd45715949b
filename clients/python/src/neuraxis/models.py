"""The types of requests and answers, as immutable values.

Unknown fields, as a newer server may send them, are ignored. A missing field that is always sent raises BadAnswer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from neuraxis.errors import BadAnswer, Refused

Role = Literal["system", "user", "assistant", "tool", "document"]
"""Who wrote a layer, or what kind of text it is."""

Stage = str
"""What ended an exchange (an input and what follows from it).

One of the guards (REFLEX, INTUITION, COHERENCE, BREAKER, ARBITER), or the deliberation behind them (DELIBERATIVE).
"""

Action = str
"""How it ended: EXECUTED (it was answered), PASSED (it was only checked, and the guards let it pass), FAILED, or a
refusal: BLOCKED, REJECTED or WITHHELD."""

REFUSALS = frozenset({"BLOCKED", "REJECTED", "WITHHELD"})
"""The actions by which guards refuse."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A part of a prompt in its own role, beside the user's text."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input to check: the user's text, and the other parts of the prompt.

    ``context`` is its kind of situation, a name of your own; see :meth:`Client.check`. Without a ``session`` it is
    judged by itself, without regard to earlier inputs.
    """

    text: str = ""
    layers: Sequence[Layer] = ()
    documents: Sequence[str] = ()
    tool_results: Sequence[str] = ()
    context: str = ""
    session: str = ""
    agent: str = ""

    def body(self) -> dict[str, Any]:
        """Return the JSON object that is sent to the server."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of the guards on an input.

    ``stage``, ``action`` and ``reason`` say how its exchange ended, and ``sentence`` says the same in words.
    ``numbers`` are what each guard recorded, by the subject of its event; a guard that is missing did not judge the
    input.
    """

    exchange: str
    allowed: bool
    stage: Stage
    action: Action
    reason: str
    sentence: str = ""
    numbers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def require(self) -> "Verdict":
        """Return this verdict if it allows the input; else raise Refused."""
        if not self.allowed:
            raise Refused(self)
        return self


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision on a question.

    ``mode`` says how it was answered, such as RESPOND, or CLARIFY (by a question back). It is empty if a guard refused.
    """

    exchange: str
    stage: Stage
    action: Action
    reason: str
    mode: str = ""
    agent: str = ""
    session: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer, with the decision behind it. If the question was refused, ``text`` tells the user so."""

    text: str
    finish_reason: str
    decision: Decision
    usage: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Whether a guard refused the question."""
        return self.decision.action in REFUSALS


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """An exchange in a list: whose it is, and how it ended; ``stage`` and the like are empty while it is open.

    They are empty, too, if the server cannot read the end, which another release wrote: then it has an ``ended_seq``.
    ``seq`` is the sequence of its input in the log, and ``started`` the time at which that was stored (RFC 3339).
    ``mode`` is how it was answered, ``first_mode`` the mode that was chosen first.
    """

    exchange: str
    agent: str
    session: str
    seq: int
    started: str
    ended_seq: int = 0
    stage: Stage = ""
    action: Action = ""
    reason: str = ""
    mode: str = ""
    first_mode: str = ""
    latency_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Page:
    """Exchanges, the latest first.

    Pass ``before`` to get the next page; it is 0 at the end. ``head`` is the sequence up to which the ledger is
    written: the server's copy of the log, which the page comes from.
    """

    exchanges: tuple[Exchange, ...]
    before: int
    head: int


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why an exchange ended as it did: ``sentence`` in words, ``tree`` as ``neuraxis why --json`` prints it."""

    sentence: str
    tree: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Feedback that was stored in the log; ``event`` is its id there.

    If an operator said that the exchange was harmful, its input was recorded as a precedent, which ``precedent`` names:
    inputs like that one are rejected. Otherwise it is empty. If none could be recorded, ``not_learned`` says why.
    """

    exchange: str
    event: str
    precedent: str = ""
    not_learned: str = ""


def read(kind: type[T], body: Any) -> T:
    """Return a flat value from JSON; raises BadAnswer if a field is missing that is always sent."""
    if not isinstance(body, dict):
        raise BadAnswer(f"the answer has no {kind.__name__.lower()}: is the base URL that of a Neuraxis?")
    known = fields(kind)  # type: ignore[arg-type]  # T is a dataclass
    missing = [
        each.name
        for each in known
        if each.default is MISSING and each.default_factory is MISSING and body.get(each.name) is None
    ]
    if missing:
        raise BadAnswer(
            f"the answer's {kind.__name__.lower()} lacks {', '.join(missing)}: is the base URL that of a Neuraxis?"
        )
    return kind(**{each.name: body[each.name] for each in known if body.get(each.name) is not None})


def read_answer(body: Any) -> Answer:
    """Return the answer in a chat completion."""
    whole = body if isinstance(body, dict) else {}
    choices = whole.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    usage = whole.get("usage")
    return Answer(
        text=content if isinstance(content, str) else "",
        finish_reason=str(first.get("finish_reason") or ""),
        decision=read(Decision, whole.get("neuraxis")),
        usage=usage if isinstance(usage, dict) else {},
    )


def read_page(body: Any) -> Page:
    """Return a page of exchanges."""
    listed = body.get("exchanges") if isinstance(body, dict) else None
    if not isinstance(listed, list):
        raise BadAnswer("the answer lists no exchanges: is the base URL that of a Neuraxis?")
    return Page(
        exchanges=tuple(read(Exchange, each) for each in listed),
        before=int(body.get("before") or 0),
        head=int(body.get("head") or 0),
    )


def read_verdicts(body: Any, count: int) -> tuple[Verdict, ...]:
    """Return the verdicts on ``count`` inputs, in their order."""
    results = body.get("results") if isinstance(body, dict) else None
    if not isinstance(results, list) or len(results) != count:
        raise BadAnswer("the answer has not a verdict for each input: is the base URL that of a Neuraxis?")
    return tuple(read(Verdict, each) for each in results)


def read_explanation(body: Any) -> Explanation:
    """Return why an exchange ended as it did."""
    if not isinstance(body, dict):
        raise BadAnswer("the answer explains nothing: is the base URL that of a Neuraxis?")
    return Explanation(sentence=str(body.get("sentence") or ""), tree=body)
