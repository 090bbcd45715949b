"""Whatever is sent by the OpenAPI document, or against it, is answered as the document says: Schemathesis asks.

Requests are made up first, the same in every run, and then sent to a gateway on a simulated log in virtual time: one
that nobody answers takes no time there.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.actors.gateway.asking import working
from tests.actors.gateway.http.fakes import Examinations, Measuring, Operations, Records
from tests.actors.gateway.http.rig import URL, gateway
from tests.actors.gateway.http.test_schema import document
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream

if TYPE_CHECKING:  # Schemathesis takes long to import, and each process of a run collects this module
    from schemathesis.generation import GenerationMode

CHECKS = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
SEED = 17


def made_up(operation: Any, mode: "GenerationMode", most: int) -> list[Any]:
    """Return requests for an operation, the same each time."""
    from schemathesis.generation import GenerationMode

    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.headers):
        return []  # nothing can be wrong with it, which takes long to find out
    found: list[Any] = []

    @seed(SEED)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def collect(case: Any) -> None:
        found.append(case)

    collect()
    return found


def all_made_up(most: int) -> Iterator[Any]:
    import schemathesis
    from schemathesis.generation import GenerationMode

    described = document()[0]
    for methods in described["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)  # keys have tests of their own
    schema = schemathesis.openapi.from_dict(described)
    for found in schema.get_all_operations():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            yield from made_up(found.ok(), mode, most)


async def sent(client: httpx.AsyncClient, case: Any) -> httpx.Response:
    import requests

    given = case.as_transport_kwargs(base_url=URL)
    known = {name: given[name] for name in ("method", "url", "headers", "params", "json", "data") if name in given}
    prepared = requests.Request(**known).prepare()
    body: Any = prepared.body
    return await client.request(prepared.method or "", prepared.url or "", headers=dict(prepared.headers), content=body)


@pytest.mark.parametrize("most", [2, pytest.param(40, marks=pytest.mark.faults)])
def test_every_answer_is_as_the_document_says(most: int) -> None:
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi import checks

    made = [getattr(checks, name) for name in CHECKS]
    cases = list(all_made_up(most))
    wrong: list[str] = []

    async def body(stream: SimulatedStream) -> None:
        services: dict[str, Any] = {
            "records": Records(),
            "operations": Operations(),
            "examinations": Examinations(),
            "metrics_source": Measuring(),
        }
        async with working(stream), gateway(stream, wait_s=2.0, answer_s=2.0, **services) as client:
            for case in cases:
                answer = await sent(client, case)
                try:
                    case.validate_response(answer, checks=made)
                except FailureGroup as told:
                    wrong.extend(f"{each}\n{case.as_curl_command()}\n{answer.text[:300]}" for each in told.exceptions)

    in_world(body)
    assert len(cases) > most
    assert not wrong, "\n\n".join(wrong[:20])
