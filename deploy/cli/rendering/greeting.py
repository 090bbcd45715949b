"""What a set says once it is up: where it is, who answers, and what to try next. Pure."""

import shlex
from pathlib import Path

import msgspec

from actors.gateway.http.dashboard import PAGE

_QUESTION = "What is the capital of Peru?"


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """A set that is up.

    Attributes:
        program: What the command line is called by where the person stands.
        data: The set's data folder; ``flags`` are those by which commands find it, if they need any.
        http: The gateway's URL, empty without one; ``nats`` the broker's.
        backend: Who answers: ``composer``, or the kind of model; ``models`` names those asked, ``why`` says why.
    """

    program: str
    data: str
    flags: tuple[str, ...]
    http: str
    nats: str
    backend: str
    models: tuple[str, ...]
    why: str


def greeting(up: Up) -> str:
    """Return the lines that end a start: the addresses, who answers, and three commands that work when pasted."""
    where = f" {shlex.join(up.flags)}" if up.flags else ""
    explains, checks = f"{up.program} why last{where}", f"{up.program} doctor{where}"
    wide = max(len(explains), len(checks))
    lines = [
        "",
        "Neuraxis is up.",
        f"  HTTP    {up.http or 'off'}",
        *([f"  look    {up.http}{PAGE}"] if up.http else []),
        f"  broker  {up.nats}",
        f"  data    {up.data}",
        *(f"  {line}" for line in _answers(up)),
        "Try next, in another terminal:",
        f'  {up.program} ask "{_QUESTION}"{where}',
        f"  {explains:<{wide}}  # explains the answer",
        f"  {checks:<{wide}}  # checks the set",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def called_by(argument: str, found: str | None, here: Path) -> str:
    """Return how to call this program again.

    Args:
        argument: What it was called by, as ``sys.argv[0]``.
        found: Where ``neuraxis`` is on the path, if it is.
        here: The current folder.
    """
    script = Path(argument)
    if script.name != "neuraxis":  # python -m deploy.cli, for example: the script has the documented name
        return "neuraxis"
    if found is not None and Path(found).resolve() == script.resolve():
        return "neuraxis"
    full = script.absolute()
    return shlex.quote(str(full.relative_to(here) if full.is_relative_to(here) else full))


def _answers(up: Up) -> list[str]:
    if up.backend != "composer":
        return [f"model   {', '.join(up.models) or up.backend} ({up.why})"]
    return [
        "model   none: a composer answers, from what is remembered",
        f"        ({up.why};",
        "        attach one: --llm URL, or `make local-llm` and --llm local)",
    ]
