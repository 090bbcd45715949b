"""Where an endpoint is asked, and what it lists, over real HTTP."""

import asyncio
from typing import Any

from actors.llm.client import ChatClient
from actors.llm.endpoint import Endpoint, base_url
from actors.llm.wire.response_parsing import ListedModel
from tests.actors.llm.asking import KEY, QUICK, Asking
from tests.actors.llm.scripted import says, serving
from tests.actors.llm.test_quirks import whole
from tests.each import each


@each(
    ("after", "path"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("?api-version=2024-10-21", "/v1/chat/completions?api-version=2024-10-21"),
        ("/v1/?api-version=2024-10-21&x=a%20b", "/v1/chat/completions?api-version=2024-10-21&x=a%20b"),
        (
            "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
            "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_the_query_of_an_address_stays_behind_its_path(after: str, path: str) -> None:
    async def run() -> None:
        async with serving(says()) as endpoint:
            written = base_url(endpoint.base_url.removesuffix("/v1") + after)
            async with ChatClient.open(Endpoint(written, KEY), connect_s=2.0, concurrency=1) as client:
                await Asking(client, QUICK).completed()
            assert endpoint.asked[0].path == path
            assert endpoint.asked[0].headers["authorization"] == f"Bearer {KEY}"
            assert endpoint.asked[0].headers.get("api-key") == (KEY if "api-version" in after else None)

    asyncio.run(run())


# --- lists of models


@each(
    ("listing", "found"),
    [
        ({"data": None}, ()),
        ({"data": [{"id": "m", "max_model_len": 8192}]}, (ListedModel("m", 8192),)),
        ({"data": [{"id": 7, "context_length": "32768"}]}, (ListedModel("7", 32768),)),
        ({"models": [{"name": "m", "meta": {"n_ctx": 4096}}]}, (ListedModel("m", 4096),)),
        ([{"id": "m", "context_window": 131072}], (ListedModel("m", 131072),)),
        (["m"], (ListedModel("m"),)),
        ({"data": [{"id": "m", "max_model_len": None}, {"id": None}, None]}, (ListedModel("m"),)),
        ({"data": [{"id": "m", "top_provider": {"context_length": 9.0}}]}, (ListedModel("m", 9),)),
    ],
)
def test_a_list_of_models_is_read_in_every_form_with_the_contexts_it_tells(listing: Any, found: Any) -> None:
    async def run() -> None:
        async with serving(whole(listing)) as endpoint:
            # Not under /v1/models, which the scripted endpoint answers by itself.
            other = Endpoint(endpoint.base_url + "/x")
            async with ChatClient.open(other, connect_s=2.0, concurrency=1) as client:
                assert await client.models() == found

    asyncio.run(run())
