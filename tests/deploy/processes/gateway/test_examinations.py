"""Questions that the gateway answers by itself, before a process is started for them."""

import asyncio

import pytest

from actors.actor_names import actor_packages
from actors.gateway.http.feedback.service import RatedExchange
from actors.gateway.http.scopes import NotFound
from actors.registry import ACTORS
from deploy.config.settings import LogSettings
from deploy.processes.gateway.examinations import BrokerExaminations
from events.jetstream import Access


async def _never(exchange: str) -> RatedExchange:
    raise AssertionError(exchange)


def test_an_actor_that_there_is_not_is_told_without_a_process() -> None:
    # No process could answer: there is no broker, and no time.
    asked = BrokerExaminations(Access(servers="nats://127.0.0.1:9"), LogSettings(), _never, within_s=0.0)
    with pytest.raises(NotFound, match="there is no actor 'brekaer': did you mean 'breaker'"):
        asyncio.run(asked.state("brekaer", "lunch", 0, ""))


def test_the_names_of_actors_are_those_of_the_registry() -> None:
    assert actor_packages() == list(ACTORS)
