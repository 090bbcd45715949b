"""The lines that ``neuraxis up`` prints when the set is up: addresses, who answers, and what to try next. Pure."""

import shlex
from pathlib import Path

import msgspec

from actors.gateway.http.dashboard import PAGE

_QUESTION = "What is the capital of Peru?"


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """A set that is up.

    Attributes:
        program: How to call the command line from the current folder.
        data: The set's data folder; ``flags`` are the options by which commands find it, if they need any.
        http: The gateway's URL, empty without one; ``nats`` is the broker's.
        backend: Who answers: the kind of model, or ``composer``, which needs none and uses what is remembered.
            ``models`` names the models, ``why`` says why they or the composer answer, and ``doubt`` why the models may
            give no answer; empty for none.
    """

    program: str
    data: str
    flags: tuple[str, ...]
    http: str
    nats: str
    backend: str
    models: tuple[str, ...]
    why: str
    doubt: str = ""


def greeting(up: Up) -> str:
    """Return the lines that end a start: the addresses, who answers, and three commands that work when pasted."""
    flags = f" {shlex.join(up.flags)}" if up.flags else ""
    explains, checks = f"{up.program} why last{flags}", f"{up.program} doctor{flags}"
    width = max(len(explains), len(checks))
    lines = [
        "",
        "Neuraxis is up.",
        f"  HTTP    {up.http or 'off'}",
        *([f"  look    {up.http}{PAGE}"] if up.http else []),
        f"  broker  {up.nats}",
        f"  data    {up.data}",
        *(f"  {line}" for line in _model_lines(up)),
        "Try next, in another terminal:",
        f'  {up.program} ask "{_QUESTION}"{flags}',
        f"  {explains:<{width}}  # explains the answer",
        f"  {checks:<{width}}  # checks the set",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def called_by(argument: str, found: str | None, here: Path) -> str:
    """Return how to call this program again.

    Args:
        argument: How it was called, as in ``sys.argv[0]``.
        found: The path at which ``neuraxis`` is found by PATH, if it is.
        here: The current folder.
    """
    script = Path(argument)
    if script.name != "neuraxis":  # python -m deploy.cli, for example: the script has the documented name
        return "neuraxis"
    if found is not None and Path(found).resolve() == script.resolve():
        return "neuraxis"
    full = script.absolute()
    return shlex.quote(str(full.relative_to(here) if full.is_relative_to(here) else full))


def _model_lines(up: Up) -> list[str]:
    if up.backend != "composer":
        doubt = [f"        doubtful: {up.doubt}"] if up.doubt else []
        return [f"model   {', '.join(up.models) or up.backend} ({up.why})", *doubt]
    return [
        "model   none: a composer answers, from what is remembered",
        f"        ({up.why};",
        "        attach one: --llm URL, or `make local-llm` and --llm local)",
    ]
