"""Which agent an input is for where it names none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.gateway import InvalidInput, check_name
from actors.gateway.agents import AgentPer, agent_for, why_user_is_ignored
from schemas.names import wrong_with_name
from tests.each import each

NAMES = st.text(min_size=1, max_size=300).filter(lambda name: not wrong_with_name(name))


@each("per", ["shared", "user", "session"])
def test_an_agent_that_is_named_is_taken_as_it_is(per: AgentPer) -> None:
    assert agent_for("support", per=per, user="ada", session="lunch") == "support"


def test_one_for_all_is_the_default_agent() -> None:
    assert agent_for("", per="shared", user="ada", session="lunch") == "default"


def test_a_user_has_one_agent_in_all_sessions_and_no_other_has_it() -> None:
    lunch, supper, others = (
        agent_for("", per="user", user=user, session=session)
        for user, session in (("ada", "lunch"), ("ada", "supper"), ("bob", "lunch"))
    )
    assert lunch == supper == "user:ada"
    assert others == "user:bob"


def test_an_unknown_user_never_has_the_agent_that_is_everybodys_or_a_users() -> None:
    assert agent_for("", per="user", session="ada") == "session:ada"
    with pytest.raises(InvalidInput, match="name the user, or an agent"):
        agent_for("", per="user")
    with pytest.raises(InvalidInput, match="name the session, or an agent"):
        agent_for("", per="session", user="ada")


@given(one=NAMES, other=NAMES)
def test_agents_have_names_that_can_be_taken_and_are_apart(one: str, other: str) -> None:
    agents = [agent_for("", per="user", user=user) for user in (one, other)]
    for agent in agents:
        check_name("agent", agent)
    assert (agents[0] == agents[1]) is (one == other)


def test_a_user_is_heard_where_agents_are_one_a_user_and_told_of_elsewhere() -> None:
    assert why_user_is_ignored("", per="user", user="ada") == ""
    for per, whose in (("shared", "all users share an agent"), ("session", "each session has its own agent")):
        assert whose in why_user_is_ignored("", per=per, user="ada")
        assert why_user_is_ignored("an agent", per=per, user="ada") == why_user_is_ignored("", per=per, user="") == ""
