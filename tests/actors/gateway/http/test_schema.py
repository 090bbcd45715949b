"""The document that describes the gateway."""

from typing import Any

import pytest
from litestar.openapi.plugins import YamlRenderPlugin

from actors.gateway.http.access import Limits
from tests.actors.gateway.http.rig import gateway
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream


def document() -> tuple[dict[str, Any], str]:
    found = []

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream) as client:
            answer = await client.get("/schema")
            assert (await client.get("/schema/openapi.yaml")).status_code == 200
            found.append((answer.json(), answer.text))

    in_world(body)
    return found[0]


def test_every_endpoint_is_described() -> None:
    paths = document()[0]["paths"]
    assert {path: set(methods) for path, methods in paths.items()} == {
        "/orchestrator/loop-complete": {"post"},
        "/orchestrator/guardrails-status/{loop_id}": {"get"},
        "/orchestrator/override-guardrails/{loop_id}": {"post"},
        "/v1/chat/completions": {"post"},
        "/v1/models": {"get"},
        "/v1/models/{model}": {"get"},
        "/v1/ticks": {"post"},
        "/v1/feedback": {"post"},
        "/v1/guard": {"post"},
        "/v1/moderations": {"post"},
        "/v1/verdicts": {"post"},
        "/v1/allowances": {"get", "post"},
        "/v1/allowances/{allowance}/withdraw": {"post"},
        "/api/exchanges": {"get"},
        "/api/exchanges/{exchange}": {"get"},
        "/api/exchanges/{exchange}/why": {"get"},
        "/api/overview": {"get"},
        "/api/settings": {"get"},
        "/api/state/{actor}": {"get"},
        "/api/state/{actor}/{key}": {"get"},
        "/api/what-if": {"post"},
        "/api/breaker/reset": {"post"},
        "/api/events": {"get"},
        "/metrics": {"get"},
        "/metrics/targets": {"get"},
        "/healthz": {"get"},
        "/readyz": {"get"},
    }


def test_bodies_and_failures_are_described() -> None:
    described, _ = document()
    operation = described["paths"]["/orchestrator/loop-complete"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert set(described["components"]["schemas"][body]["required"]) == {"loop_id", "reflection_status"}
    assert {"200", "400", "503", "504"} <= set(operation["responses"])


def test_no_page_of_it_loads_anything_from_elsewhere() -> None:
    _, text = document()
    assert "cdn" not in text
    assert "<script" not in text


def test_it_is_rendered_as_yaml_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes a tenth of a second, and whoever has any key could keep everybody else waiting."""
    rendered: list[object] = []
    render = YamlRenderPlugin.render

    def counted(plugin: YamlRenderPlugin, *given: Any) -> bytes:
        rendered.append(plugin)
        return render(plugin, *given)

    monkeypatch.setattr(YamlRenderPlugin, "render", counted)

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, limits=Limits(concurrent=1, body_s=5.0)) as client:  # an application of its own
            answers = [await client.get("/schema/openapi.yaml") for _ in range(3)]
            assert {each.status_code for each in answers} == {200}
            assert len({each.content for each in answers}) == 1

    in_world(body)
    assert len(rendered) == 1
