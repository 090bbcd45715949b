"""The endpoints for checks: the guards' verdict with its numbers, or in the shape of OpenAI's moderations."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from litestar import Request
from litestar.datastructures import State
from litestar.params import JSONBody

from actors.gateway.external_events import InvalidField, InvalidInput
from actors.gateway.http.guard.bodies import (
    GuardInput,
    GuardRequest,
    GuardVerdict,
    GuardVerdicts,
    Moderation,
    ModerationDecision,
    ModerationRequest,
    ModerationResult,
    inputs_of,
    texts_of,
)
from actors.gateway.http.guard.categories import refused_for, scores_of
from actors.gateway.http.guard.service import Check, Checked, GuardService, NoVerdict, numbers_of
from actors.gateway.http.route_building import post_body
from actors.gateway.http.scopes import ASK
from actors.gateway.http.strict_requests import User, agent_of
from actors.gateway.input_parts import layers_of, situation_of
from actors.gateway.inputs import NothingSaid

MODEL = "neuraxis"
"""The model named in answers to moderations, whatever model a request names."""

_FAILURES = {
    503: "It could not be stored in time, or nobody serves the guards.",
    504: "It is in the log, and has no end in time.",
}


@post_body("/v1/guard", GuardRequest, _FAILURES, security=ASK)
async def guard(data: JSONBody[GuardRequest], request: Request[Any, Any, State], user: User = "") -> GuardVerdicts:
    """Have the guards check an input, or several: whether each may go to a model, and the numbers behind that."""
    checks = [(path, _check(request, each, user, path)) for path, each in inputs_of(data)]
    service, found = await _checked(request, checks)
    return GuardVerdicts(
        allowed=all(each.allowed for each in found), results=tuple(_verdict(service, each) for each in found)
    )


@post_body("/v1/moderations", ModerationRequest, _FAILURES, security=ASK)
async def moderate(data: JSONBody[ModerationRequest], request: Request[Any, Any, State], user: User = "") -> Moderation:
    """Have the guards check texts, in the shape of OpenAI's moderations."""
    texts = texts_of(data)
    paths = ["input"] if len(texts) == 1 else [f"input[{index}]" for index in range(len(texts))]
    checks = [(path, _check(request, GuardInput(text=text), user)) for path, text in zip(paths, texts, strict=True)]
    service, found = await _checked(request, checks)
    return Moderation(
        id=f"modr-{found[0].exchange}", model=MODEL, results=tuple(_moderated(service, each) for each in found)
    )


ENDPOINTS = (guard, moderate)


def _check(request: Request[Any, Any, State], each: GuardInput, user: str, path: str = "") -> Check:
    service: GuardService = request.app.state.guard
    session = each.session or service.new_session()  # which has an agent of its own where every session does
    with _with_path(path):
        agent = agent_of(request, each.agent, user, session)
    return Check(
        text=each.text,
        agent=agent,
        session=session,
        layers=layers_of(each),
        situation=situation_of(each),
    )


async def _checked(
    request: Request[Any, Any, State], checks: Sequence[tuple[str, Check]]
) -> tuple[GuardService, Sequence[Checked]]:
    service: GuardService = request.app.state.guard
    deadline = service.begin()
    inputs = []
    # All inputs are checked before the first is stored.
    for path, check in checks:
        with _with_path(path):
            inputs.append((check, service.wrap(check, deadline)))
    return service, await service.check(inputs, deadline)


@contextmanager
def _with_path(path: str) -> Iterator[None]:
    """Add the path of an input in the request's body to an error about that input."""
    try:
        yield
    except InvalidField as wrong:
        raise InvalidField(f"{path}.{wrong.field}" if path else wrong.field, str(wrong), wrong.code) from wrong
    except NothingSaid as wrong:
        field = path if path.startswith("input[") or path == "input" else ".".join(filter(None, (path, "text")))
        raise InvalidField(field, f"{field}: {wrong}", wrong.code) from wrong
    except InvalidInput as wrong:
        raise InvalidField(path, f"{path}: {wrong}" if path else str(wrong), wrong.code) from wrong


def _verdict(service: GuardService, checked: Checked) -> GuardVerdict:
    return GuardVerdict(
        exchange=checked.exchange,
        allowed=checked.allowed,
        stage=checked.end.stage,
        action=checked.end.action,
        reason=checked.end.reason,
        sentence=service.sentence(checked.end, checked.events),
        numbers=numbers_of(checked.events),
    )


def _moderated(service: GuardService, checked: Checked) -> ModerationResult:
    categories = refused_for(checked.end, checked.events)
    if not checked.allowed and not any(categories.values()):
        # A guard failed or did not answer: the input is neither flagged nor known to be harmless.
        raise NoVerdict(f"exchange {checked.exchange}: {service.sentence(checked.end, checked.events)} Send it again.")
    return ModerationResult(
        flagged=not checked.allowed,
        categories=categories,
        category_scores=scores_of(checked.events),
        neuraxis=ModerationDecision(
            exchange=checked.exchange,
            stage=checked.end.stage,
            action=checked.end.action,
            reason=checked.end.reason,
            sentence=service.sentence(checked.end, checked.events),
        ),
    )
