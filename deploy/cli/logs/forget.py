"""``neuraxis forget``."""

from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.connect import open_log, run_within
from deploy.cli.options import (
    Target,
    agent_option,
    by_option,
    examples,
    json_option,
    target_options,
    timeout_option,
    why_option,
)
from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.wrapped_lines import say
from deploy.operating.deadline import Deadline

if TYPE_CHECKING:
    from deploy.operating.forgetting import Forgotten, Survey

_TIMEOUT_S = 70.0

NOT_REACHED = (
    "What this does not reach: copies that left the set (subscribers, callers, backups and copies of the store or the "
    "ledger made before, language models), and what was made of the words in numbers. docs/forgetting.md has the list."
)


@command(
    epilog=examples(
        'neuraxis forget --session travel --why "she asked for it"          # shows what would go',
        'neuraxis forget --session travel --why "she asked for it" --yes    # does it',
        'neuraxis forget --fact name --agent concierge --why "outdated" --yes',
    )
)
@target_options
@click.option("--session", metavar="NAME", help="Forget this session's words, in memory and in the log.")
@click.option("--fact", metavar="KEY", help="Forget this fact, in memory.")
@agent_option("whose session or fact it is")
@by_option
@why_option("For what reason; recorded, and never forgotten.")
@click.option("--yes", "do", is_flag=True, help="Do it; without, only show what would go.")
@timeout_option(_TIMEOUT_S, "How long this may take: for open exchanges to end, for memory's answer, and for the rest.")
@json_option
def forget(
    target: Target,
    session: str | None,
    fact: str | None,
    agent: str,
    by: str,
    why: str,
    do: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Have a session's words, or a fact, forgotten. The log keeps that it was ordered, by whom and why.

    A session's words become unreadable wherever the set keeps them, by destroying the key they are sealed with. Its
    decisions stay, and replay by their recorded numbers. There is no way back.
    """
    from deploy.operating.operator_session import FACTS_SESSION

    if (session is None) == (fact is None):
        raise WrongUse("name what to forget: --session or --fact, one of them")
    if session == FACTS_SESSION:
        raise WrongUse(f"session {session} holds the orders that forget facts: they would be undone")
    if not do:
        memories, found = run_within(target, timeout, lambda within: _survey(target, agent, session, fact, why, within))
        _show_plan(memories, found, agent, fact, as_json)
        if not (memories if found is None else found.events):
            raise CheckFailed(f"there is nothing to forget: {_nothing_there(agent, session, fact)}")
        return
    done = run_within(target, timeout, lambda within: _forget(target, agent, session, fact, by, why, within))
    _show_done(done, fact, as_json)
    if fact is not None and not done.memories:
        raise CheckFailed(f"nothing was dropped: {_nothing_there(agent, session, fact)}")
    if session is not None and done.readable:
        raise CheckFailed(
            f"memory has forgotten session {session}, but its log is not sealed: the words of "
            f"{counted(done.readable, 'event')} stay readable in it; a stream made with `neuraxis up --seal` can forget"
        )


async def _survey(
    target: Target, agent: str, session: str | None, fact: str | None, why: str, deadline: Deadline
) -> tuple[int, "Survey | None"]:
    """Return how many memories would be dropped, and what the log holds of the session."""
    from deploy.operating.forgetting import count_memories, survey
    from deploy.operating.operator_session import FACTS_SESSION
    from schemas.vocabulary.operator import ForgetOrdered

    async with open_log(target, deadline=deadline) as log:
        if session is None:
            order = ForgetOrdered(what="fact", key=fact or "", by="-", why=why)
            return await count_memories(log, agent, order, FACTS_SESSION), None
        order = ForgetOrdered(what="session", by="-", why=why)
        return await count_memories(log, agent, order, session), await survey(log, agent, session)


async def _forget(
    target: Target, agent: str, session: str | None, fact: str | None, by: str, why: str, deadline: Deadline
) -> "Forgotten":
    from deploy.operating.forgetting import forget_fact, forget_session

    async with open_log(target, deadline=deadline) as log:
        if session is not None:
            return await forget_session(log, agent, session, by=by, why=why, deadline=deadline)
        return await forget_fact(log, agent, fact or "", by=by, why=why, deadline=deadline)


def _show_plan(memories: int, survey: "Survey | None", agent: str, fact: str | None, as_json: bool) -> None:
    if as_json:
        plan = {"agent": agent, "fact": fact} if survey is None else msgspec.structs.asdict(survey)
        print_json({**plan, "memories": memories})
        return
    if survey is None:
        say(f"memory of agent {agent} would drop {memories:,} with the fact {fact!r}")
    else:
        say(
            f"session {survey.session} of agent {survey.agent}: {counted(survey.exchanges, 'exchange')},"
            f" {counted(survey.events, 'event')}; memory would drop {memories:,}, and the words of"
            f" {counted(survey.sealed, 'event')} would become unreadable"
        )
        if survey.gone:
            say(f"{survey.gone:,} have words that are unreadable already")
        if survey.readable:
            say(f"{survey.readable:,} have words that lie open: this log is not sealed, they would stay")
        _say_reminded(survey.reminded)
        _say_unread(survey.unread)
        if survey.open:
            say(f"{survey.open:,} exchanges are open: they must end first")
    say("Nothing was done. --yes does it; there is no way back.")
    say(NOT_REACHED)


def _show_done(done: "Forgotten", fact: str | None, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    if fact is None:
        what = f"session {done.session} of agent {done.agent} is forgotten"
    elif done.memories:
        what = f"fact {fact!r} of agent {done.agent} is forgotten"
    else:
        what = f"agent {done.agent} knows no fact {fact!r}"
    say(f"{what}: ordered at sequence {done.ordered_seq}")
    snapshots = f"{done.snapshots_replaced} replaced, {done.snapshots_dropped} dropped"
    say(f"memory dropped {done.memories:,}; snapshots: {snapshots}")
    if fact is None:
        key = "its key is destroyed" if done.key_destroyed else "it had no key"
        say(f"{key}; the words of {counted(done.unreadable, 'event')} are unreadable")
        _say_reminded(done.reminded)
        _say_unread(done.unread)
    say(NOT_REACHED)


def _nothing_there(agent: str, session: str | None, fact: str | None) -> str:
    if fact is None:
        return f"the log holds nothing of session {session} of agent {agent}"
    return f"memory holds nothing under {fact!r} for agent {agent}; `neuraxis state memory {agent}` shows what it holds"


def _say_unread(unread: str) -> None:
    if unread:
        say(f"{unread}: whether they hold its words is not known; the release that wrote them, or the ledger, tells")


def _say_reminded(sessions: tuple[str, ...]) -> None:
    if sessions:
        say(
            f"{len(sessions)} other session(s) were reminded of it, and keep that under their own keys until they are "
            f"forgotten, too: {', '.join(sessions)}"
        )
