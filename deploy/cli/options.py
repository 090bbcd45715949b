"""Options that commands share: how to reach the set, the configuration, and the form of the output."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from inspect import iscoroutinefunction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deploy.cli.outcomes import CheckFailed, WrongUse
from deploy.cli.wrapped_lines import say_note
from deploy.config.assignments import dotted_keys, key_of, repeated_key
from deploy.processes.event_loop import run_command

if TYPE_CHECKING:
    from deploy.config.loading import Config, Layer, Sections
    from deploy.processes.running_set import RunSettings

DEFAULT_DATA_FOLDER = Path(".neuraxis")
DEFAULT_AGENT = "default"

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
"""The types of options that name a file or a folder, which need not exist."""

_MAX_TIMEOUT_S = 30 * 24 * 3600

MAX_COUNT = 2**63 - 1
"""The largest number of events, and of anything else, that a log can hold."""


class Target:
    """The set, broker and configuration that a command's options name. Each is loaded when it is first needed.

    Attributes:
        begun: When the command began, by ``time.monotonic``; its timeout counts from then.
        flags: The broker that the options name, if they name one.
        assignments: What ``--set`` gave, as ``KEY=VALUE``.
    """

    def __init__(
        self,
        data: Path,
        nats: str = "",
        context: str = "",
        creds: str = "",
        tls_ca: str = "",
        config_file: Path | None = None,
        assignments: Sequence[str] = (),
        begun: float | None = None,
    ) -> None:
        from deploy.processes.broker_access import BrokerChoice
        from deploy.processes.running_set import DataFolder

        self.begun = time.monotonic() if begun is None else begun
        self.data = DataFolder(data)
        of_assignments = {key: named for key in _BROKERS if (named := _set_to(assignments, key))}
        if nats or context:
            _refuse_second_broker("--nats" if nats else "--context", of_assignments)
        else:  # ``--set`` of a key counts as the flag for it: NATS_URL must not win over it
            nats, context = (of_assignments.get(key, "") for key in _BROKERS)
        self.flags = BrokerChoice(url=nats, context=context, creds=creds, tls_ca=tls_ca)
        self.config_file = config_file
        self.assignments = tuple(assignments)
        self._used_sections: set[str] = set()

    def config(
        self, flags: Sequence["Layer"] = (), *, every_section: bool = False, more: "Sections | None" = None
    ) -> "Config":
        """Load the sections about running a set; what the command's other options set (``flags``) has precedence.

        ``more`` are sections of actors to load besides; ``every_section`` loads those of all actors and effectors. A
        ``--set`` of a section that is not loaded is checked, too, unless ``more`` is given: the processes of a set all
        get the same flags, and each checks its own sections.
        """
        from deploy.config.loading import RUNNING_SECTIONS, all_sections, assignment_layer, load

        self._refuse_rivals(flags)
        wanted = all_sections() if every_section else {**RUNNING_SECTIONS, **(more or {})}
        set_layers = [assignment_layer(assignment) for assignment in self.assignments]
        set_sections = {section for section, _ in self._set_keys()}
        self._used_sections |= set_sections if more is not None else set_sections & wanted.keys()
        checked = more is None and not set_sections <= wanted.keys()
        return load(
            all_sections() if checked else wanted,
            file=self.config_file,
            environment=os.environ,
            flags=[*set_layers, *flags],
            ignore_others=not (every_section or checked),
            wait_s=self._wait_for_pipe_s(),
        )

    def _wait_for_pipe_s(self) -> float:
        """Return the seconds within which a configuration that is a pipe must be written, within the timeout."""
        from events.files.bounded_files import PIPE_WAIT_S

        context = click.get_current_context(silent=True)
        given = context.params.get("timeout") if context is not None else None
        return PIPE_WAIT_S if given is None else max(0.0, min(PIPE_WAIT_S, self.begun + given - time.monotonic()))

    def _refuse_rivals(self, flags: Sequence["Layer"]) -> None:
        """Refuse an option and a ``--set`` that set the same key: one of the two would be ignored."""
        keys = {key_of(assignment) for assignment in self.assignments}
        for layer in flags:
            if rivals := keys.intersection(dotted_keys(layer.values)):
                raise WrongUse(f"{layer.origin} and --set {min(rivals)} set the same: give one of them")

    def settings_in_force(self) -> "RunSettings | None":
        """Return the settings that the running set was started with; None if no set runs, or if flags name settings."""
        from deploy.processes.running_set import NotRunning

        if self.config_file is not None or self.assignments:
            return None
        with suppress(NotRunning):
            return self.data.read().in_force
        return None

    @contextmanager
    def unnoted_settings(self) -> Iterator[None]:
        """Read settings of ``--set`` in this block without counting them as used by the command."""
        used = set(self._used_sections)
        try:
            yield
        finally:
            self._used_sections = used

    def changes(self) -> list["Layer"]:
        """Return the layers of ``--set``, for a command that does not apply them to the configuration."""
        from deploy.config.loading import assignment_layer

        self._used_sections |= {section for section, _ in self._set_keys()}
        return [assignment_layer(assignment) for assignment in self.assignments]

    def unused_settings(self) -> list[str]:
        """Return the keys of ``--set`` that the command did not use. Call it at the command's end."""
        return [key for section, key in self._set_keys() if section not in self._used_sections]

    def _set_keys(self) -> list[tuple[str, str]]:
        keys = [assignment.partition("=")[0] for assignment in self.assignments]
        return [(key.partition(".")[0].lower(), key) for key in keys]

    def config_flags(self) -> tuple[str, ...]:
        """Return the flags that give another process the same configuration, without its broker."""
        file = ("--config", str(self.config_file)) if self.config_file is not None else ()
        assignments = (each for each in self.assignments if key_of(each) not in _BROKERS)
        return (*file, *(part for assignment in assignments for part in ("--set", assignment)))

    def refuse_broker(self, what: str) -> None:
        """Refuse options that name a broker, for a command that asks none; ``what`` says what it does instead."""
        named = {"--nats": self.flags.url, "--context": self.flags.context, "--creds": self.flags.creds}
        if given := [option for option, value in {**named, "--tls-ca": self.flags.tls_ca}.items() if value]:
            raise WrongUse(f"{' and '.join(given)}: {what}, and no broker is asked: leave it out")


_BROKERS = ("broker.url", "broker.context")
"""The settings that name a broker, as ``--nats`` and ``--context`` do."""


def _refuse_second_broker(option: str, of_assignments: Mapping[str, str]) -> None:
    """Refuse ``--set`` of a broker beside an option that names one: it would be ignored."""
    for key in of_assignments:
        raise WrongUse(f"{option} and --set {key} each name a broker: give one of them")


def _set_to(assignments: Sequence[str], key: str) -> str:
    """Return what ``--set`` gave a key that takes text; empty for nothing."""
    return next((each.partition("=")[2] for each in assignments if key_of(each) == key), "")


def several(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options, in this order of the help."""

    def with_all(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return with_all


def _with_each_key_once(_: click.Context, parameter: click.Parameter, assignments: tuple[str, ...]) -> tuple[str, ...]:
    """Return what ``--set`` gave; raises BadParameter if a key is set twice: only its last value would count."""
    if key := repeated_key(assignments):
        raise click.BadParameter(f"{key} is set twice: give it one value", param=parameter)
    return assignments


data_option = click.option(
    "--data", type=FOLDER, default=DEFAULT_DATA_FOLDER, show_default=True, help="Folder of the set."
)
"""Adds ``--data``, the data folder."""

config_options = several(
    click.option(
        "--config", "config_file", type=FILE, help="Configuration file.  [default: neuraxis.toml if there is one]"
    ),
    click.option(
        "--set", "assignments", multiple=True, metavar="KEY=VALUE", callback=_with_each_key_once,
        help="Set a configuration value: router.profile=seed.",
    ),
)  # fmt: skip
"""Adds ``--config`` and ``--set``."""


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which set or broker to use; the command gets them as its first argument, a `Target`.

    A command that is a coroutine function runs in an event loop.
    """
    needs_loop = iscoroutinefunction(command)

    @wraps(command)
    def with_target(
        data: Path,
        nats: str,
        context: str,
        creds: str,
        tls_ca: str,
        config_file: Path | None,
        assignments: Sequence[str],
        **others: Any,
    ) -> Any:
        from deploy.logging_setup import set_up_for_command

        set_up_for_command()
        invocation = click.get_current_context()
        begun = invocation.find_object(float)
        target = Target(data, nats, context, creds, tls_ca, config_file, assignments, begun)
        if invocation.meta.get(_NO_AGENT_NAMED) and others.get("log_file") is None:
            from deploy.cli.connect import note_default_agent

            note_default_agent(target)
        try:
            done = run_command(command(target, **others)) if needs_loop else command(target, **others)
        except CheckFailed:  # the command has done its work; other errors matter more than a warning
            warn_of_unused_settings(target)
            raise
        warn_of_unused_settings(target)
        return done

    add_options = several(
        data_option,
        click.option("--nats", default="", metavar="URL", help="Broker to use instead; also NATS_URL."),
        click.option(
            "--context", default="", metavar="NAME|FILE|DIR", help="The same by a NATS CLI context, or logins' folder."
        ),
        click.option("--creds", default="", metavar="FILE", help="NATS credentials file."),
        click.option("--tls-ca", default="", metavar="FILE", help="CA certificates to trust the broker by."),
        config_options,
    )
    wrapped: Callable[..., Any] = add_options(with_target)
    return wrapped


def warn_of_unused_settings(target: Target) -> None:
    """Say on stderr which settings of ``--set`` a command had no use for, if any. Call it at the command's end."""
    if unused := target.unused_settings():
        say_note(
            f"--set {', '.join(unused)} changes nothing here: the processes of a set take it (`neuraxis up --set`), "
            "and `neuraxis what-if --set` tries an actor's"
        )


class WholeNumber(click.IntRange):
    """The type of an option that is a whole number, with a least value; it refuses more than any log can hold."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; raises BadParameter."""
        number = super().convert(value, param, ctx)
        if number > MAX_COUNT:
            self.fail(f"{value} is more than any log can hold", param, ctx)
        return number


def whole_number(least: int) -> WholeNumber:
    """Return the type of an option that counts something."""
    return WholeNumber(least)


class Number(click.FloatRange):
    """The type of an option that is a number within a range. It refuses ``nan`` and ``inf``, which click accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; raises BadParameter."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


def timeout_option(default: float, what: str = "How long this may take, connecting included.") -> Callable[[Any], Any]:
    """Return a decorator that adds ``--timeout``, in seconds; see ``deploy.operating.deadline``."""
    return click.option(
        "--timeout",
        type=Number(0, _MAX_TIMEOUT_S, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=what,
    )


def last_option(what: str, default: int = 10) -> Callable[[Any], Any]:
    """Return a decorator that adds ``--last``: how many of the latest to show."""
    return click.option(
        "--last", type=whole_number(0), default=default, show_default=True, help=f"How many {what} to show."
    )


to_option = click.option("--to", "upto", default="", metavar="SEQ|TIME", help="Stop there.  [default: the end]")
"""Adds ``--to``, as the argument ``upto``: where in the log to stop; empty for its end."""


def ledger_option(help: str) -> Callable[[Any], Any]:
    """Return a decorator that adds ``--ledger``, the file of a ledger."""
    return click.option("--ledger", type=FILE, metavar="FILE", help=help)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
"""Adds ``--json``, as the argument ``as_json``."""


def _add_older_weights(_context: click.Context, _option: click.Parameter, folder: str | None) -> str:
    from actors.contract.text.judge.model import InvalidModel
    from actors.contract.text.judge.weights import add_weights

    if folder:
        try:
            add_weights(Path(folder))
        except InvalidModel as wrong:
            raise click.BadParameter(str(wrong)) from wrong
    return folder or ""


models_option = click.option(
    "--models",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    callback=_add_older_weights,
    help="Older weights in it or below (scorer*.npz, trust*.npz, turn*.npz), for what was decided by them.",
)
"""Adds ``--models``, by which this process can use older weights of learned models; the command gets the folder."""


weights_option = click.option(
    "--weights",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="These weights (scorer.npz, trust.npz, turn.npz) instead of those that decisions rest on.",
)
"""Adds ``--weights``; the command gets the folder, or nothing, and uses it in a block of :func:`judging_by`."""


def check_supplied_weights() -> None:
    """Refuse unreadable weights in the folder NEURAXIS_MODELS, before anything is started that would use them."""
    if not os.environ.get("NEURAXIS_MODELS"):
        return
    from actors.contract.text.judge.model import InvalidModel
    from actors.contract.text.judge.weights import check_configured_weights

    try:
        check_configured_weights()
    except InvalidModel as wrong:
        raise WrongUse(str(wrong)) from wrong


@contextmanager
def judging_by(folder: str | None) -> Iterator[None]:
    """Use the weights in a folder for the length of the block; without a folder, those of this release.

    Raises:
        WrongUse: the folder holds no weights that can be used.
    """
    from actors.contract.text.judge import weights
    from actors.contract.text.judge.model import InvalidModel

    with ExitStack() as judging:
        if folder:
            try:
                judging.enter_context(weights.judging_with(Path(folder)))
            except InvalidModel as wrong:
                raise WrongUse(f"--weights: {wrong}") from wrong
        yield


def examples(*lines: str) -> str:
    """Return a command's epilog that shows examples, each on a line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _or_current_user(context: click.Context, _option: click.Parameter, by: str) -> str:
    from deploy.operating.current_user import current_user_name

    if by or context.resilient_parsing:  # a shell that completes a command needs no name
        return by
    return current_user_name()


by_option = click.option(
    "--by", default="", metavar="NAME", callback=_or_current_user, help="Who does this, for the record.  [default: you]"
)
"""Adds ``--by``: who gives an order, for the record; by default, this machine's user."""


required_by_option = click.option("--by", required=True, metavar="WHO", help="Who orders it; recorded.")
"""Adds ``--by`` as an option that must be given: who gives an order, for the record."""


def why_option(help: str = "For what reason; recorded.") -> Callable[[Any], Any]:
    """Return a decorator that adds ``--why``: the reason for an order."""
    return click.option("--why", required=True, metavar="TEXT", help=help)


_NO_AGENT_NAMED = "deploy.cli.options.no_agent_named"
"""The key in a click context's ``meta`` that is true if :func:`agent_option` was left at its default."""


def _note_source(context: click.Context, option: click.Parameter, agent: str) -> str:
    """Note in the context whether the agent was named, for :func:`target_options`."""
    source = context.get_parameter_source(option.name or "")
    context.meta[_NO_AGENT_NAMED] = source is click.core.ParameterSource.DEFAULT
    return agent


def agent_option(whose: str) -> Callable[[Any], Any]:
    """Return a decorator that adds ``--agent``, the agent that a command looks at or acts for.

    Where each user or session has an agent of its own, :func:`target_options` says on stderr that none was named.
    ``whose`` ends the help sentence that begins with "Agent".
    """
    return click.option(
        "--agent", default=DEFAULT_AGENT, show_default=True, callback=_note_source, help=f"Agent {whose}."
    )


def agent_and_user_options(whose: str) -> Callable[[Any], Any]:
    """Return a decorator that adds ``--agent`` (default: None) and ``--user``; ``whose``: see :func:`agent_option`."""
    help = f"Agent {whose}.  [default: default, or as gateway.agent_per says]"
    who = "Who says it, and has an agent if gateway.agent_per is user."
    return several(
        click.option("--agent", default=None, help=help), click.option("--user", default="", metavar="NAME", help=who)
    )
