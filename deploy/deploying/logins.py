"""The broker logins of a deployment: one for each worker process, and one for each other role."""

from collections.abc import Sequence

from deploy.processes.broker.users import ROLES, SYSTEM, workers_of_actors


class BadLogin(ValueError):
    """A login that was asked for cannot be made; the message says why."""

    code = "bad_login"


def one_login_each() -> dict[str, tuple[str, ...]]:
    """Return a login for each actor and each effector, with the actor's name."""
    return {actor: (actor,) for actors in workers_of_actors().values() for actor in actors}


def grouped_logins(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read logins as people write them: ``NAME=ACTOR,ACTOR``; ``all`` and the other groups of ``neuraxis worker`` work.

    Raises:
        BadLogin: a name cannot be a login's, or an actor is unknown.
    """
    from deploy.processes.worker import LEDGER, UnknownWork, check_work

    logins: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, names = text.partition("=")
        if not equals or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise BadLogin(f"{text!r} is no login: write NAME=ACTOR,ACTOR with a name of letters, digits, - and _")
        if name in (*ROLES, SYSTEM):
            raise BadLogin(f"{name!r} is a login of every deployment: give the workers another name")
        if name in logins:
            raise BadLogin(f"login {name!r} is given twice: list all of its actors once")
        try:
            actors = check_work([each.strip() for each in names.split(",") if each.strip()])
        except UnknownWork as wrong:
            raise BadLogin(str(wrong)) from wrong
        if not actors:
            raise BadLogin(f"login {name!r} names no actor: write {name}=ACTOR,ACTOR, such as {name}=router")
        if LEDGER in actors:
            raise BadLogin(f"login {name!r} cannot run the ledger, which has a login of its own: leave it out")
        logins[name] = actors
    return logins
