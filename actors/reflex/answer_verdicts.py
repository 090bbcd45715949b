"""Which texts of models and tools reflex reads, and its verdict on them (``actors.contract.answers``). Pure.

An answer to a person, by our model or the sender's, is compared with what the model was asked. A tool's result, a plan
or a thought of a model goes into a prompt or into memory, so it is searched for instructions.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from actors.contract.answers.credentials import PromptSecrets
from actors.contract.answers.leaks import leaked
from actors.contract.answers.pictures import hosts_with_prompt_words
from actors.contract.answers.prompt import Prompt
from actors.reflex.settings import ReflexSettings
from schemas.actor import Message
from schemas.effectors.model_calls import Purpose
from schemas.event import Event
from schemas.unread import Unread
from schemas.vocabulary.delegate import DelegateAnswered
from schemas.vocabulary.gateway import InputAnswered, InputReceived, Layer, Role
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.reflex import AnswerFault, Match, ReflexAnswerBlocked, ReflexAnswerPassed, Secret, Writer

ANSWERING: frozenset[Purpose] = frozenset({"respond", "clarify", "acknowledge"})
"""The purposes of calls whose answers a person reads."""


class GeneratedText(NamedTuple):
    """Text of a model or tool: its writer, the id of its event, its texts, and whether a person reads them.

    ``by`` is the sender's own model (``upstream``), a ``model`` of ours, or an external specialist (``tool``).
    ``stopped_for`` holds the faults for which its delivery was already stopped, while it was streamed.
    """

    by: Writer
    source: str
    texts: tuple[str, ...]
    to_person: bool = True
    stopped_for: tuple[AnswerFault, ...] = ()

    @property
    def as_input(self) -> InputReceived:
        """The texts in the form of an input, so that they are searched as an input is."""
        role: Role = "tool" if self.by == "tool" else "assistant"
        first, *others = self.texts or ("",)
        return InputReceived(text=first, layers=tuple(Layer(role=role, content=text) for text in others))


class SignatureFindings(NamedTuple):
    """The signatures (phrases) of attacks found in a text, whether one of them blocks, and what was not read."""

    matches: tuple[Match, ...]
    block: bool
    unread: tuple[Unread, ...]


def generated_text_in(event: Event, source: str) -> GeneratedText | None:
    """Return the text in an event that reflex reads; None for any other event, such as a model's judgement of a text.

    :func:`thought_in` finds a thought, which belongs to no exchange.
    """
    match event:
        case InputAnswered():
            return GeneratedText("upstream", source, texts_in(event), stopped_for=event.stopped_for)
        case LlmCompleted(purpose=purpose, text=text) if purpose in ANSWERING or purpose == "act":
            return GeneratedText("model", source, (text,), purpose in ANSWERING)
        case DelegateAnswered(answer=answer):
            return GeneratedText("tool", source, (answer,), False)
    return None


def thought_in(message: Message) -> GeneratedText | None:
    """Return a model's text for a thought of an idle agent, which memory keeps; None for any other message.

    Of what is asked of models outside exchanges, only thoughts are about a session.
    """
    match message.event:
        case LlmCompleted(purpose="reflect", text=text) if message.session and not message.exchange:
            return GeneratedText("model", message.id, (text,), False)
    return None


def texts_in(answer: InputAnswered) -> tuple[str, ...]:
    """Return all texts of an answer: those of its choices, and the arguments of its tool calls."""
    generated = (
        text for choice in answer.choices for text in (choice.text, *(call.arguments for call in choice.tool_calls))
    )
    return tuple(filter(str.strip, generated))


def verdict_on(
    generated: GeneratedText,
    prompt: Prompt,
    settings: ReflexSettings,
    signatures: SignatureFindings,
    views: Iterable[tuple[int, str]],
) -> ReflexAnswerBlocked | ReflexAnswerPassed:
    """Return the verdict; ``views`` are the readings of the texts besides the plain one, each with its text's index.

    The faults of a text: it holds much of the system prompt (``prompt_leak``); a picture's URL in it carries words of
    the prompt to a host (``carrying_link``); a key or password is in it (``secret``); or a blocking signature, such as
    an order to a model (``orders``).
    """
    decoded_views = list(views)
    secrets = tuple(_secrets(generated.texts, prompt, decoded_views))
    withheld_for: tuple[AnswerFault, ...] = settings.results_withheld_for
    share, hosts = 0.0, tuple[str, ...]()
    if generated.to_person:
        withheld_for = settings.withheld_for
        share = leaked(prompt, (*generated.texts, *(view for _, view in decoded_views)))
        hosts = hosts_with_prompt_words(prompt, generated.texts)
    # Secrets in a forwarded answer can only be withheld; in an answer to a person they are masked or withheld, as the
    # setting says; in any other text they are masked.
    masked = bool(secrets) and settings.secrets != "record" and generated.by != "upstream"
    if generated.to_person and not (masked and settings.secrets == "mask"):
        masked = False
        withheld_for = (*withheld_for, "secret") if settings.secrets != "record" else withheld_for
    faults: dict[AnswerFault, bool] = {
        "prompt_leak": share >= settings.leak_share,
        "carrying_link": bool(hosts),
        "secret": bool(secrets),
        "orders": signatures.block,
    }
    withheld = tuple(
        fault for fault, found in faults.items() if fault in generated.stopped_for or (found and fault in withheld_for)
    )
    passed = ReflexAnswerPassed(
        leaked=share,
        hosts=hosts,
        matches=signatures.matches,
        unread=signatures.unread,
        by=generated.by,
        source=generated.source,
        secrets=secrets,
        masked=masked,
    )
    if not withheld:
        return passed
    fields = {name: getattr(passed, name) for name in passed.__struct_fields__ if name != "masked"}
    return ReflexAnswerBlocked(faults=withheld, **fields)


def _secrets(texts: tuple[str, ...], prompt: Prompt, views: Iterable[tuple[int, str]]) -> Iterable[Secret]:
    """Yield the secrets of each text with their positions; one found only in a decoded view covers the whole text."""
    prompt_secrets = PromptSecrets(prompt)
    plain = [prompt_secrets.found_in(text) for text in texts]
    for part, found in enumerate(plain):
        yield from (Secret(kind=each.kind, part=part, span=(each.start, each.end)) for each in found)
    disguised: dict[tuple[int, str], None] = {}
    for part, view in views:
        disguised |= dict.fromkeys((part, kind) for kind in prompt_secrets.only_in(view, texts[part]))
    yield from (
        msgspec.convert({"kind": kind, "part": part, "span": (0, len(texts[part]))}, Secret) for part, kind in disguised
    )
