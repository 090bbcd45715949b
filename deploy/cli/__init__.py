"""The command line: each command has a module, which :data:`COMMANDS` names and which is imported at its first use."""

import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from deploy.cli.command_types import Commands
from deploy.cli.outcomes import INTERRUPTED
from deploy.cli.wrapped_lines import say
from schemas.intake.nearest_name import nearest_name

COMMANDS: dict[str, str] = {
    "up": "deploy.cli.running.up:up",
    "worker": "deploy.cli.running.worker:worker",
    "gateway": "deploy.cli.running.gateway:gateway",
    "ask": "deploy.cli.asking.ask:ask",
    "chat": "deploy.cli.asking.chat:chat",
    "feed": "deploy.cli.asking.feed:feed",
    "rerun": "deploy.cli.asking.rerun:rerun",
    "why": "deploy.cli.replaying.why:why",
    "replay": "deploy.cli.replaying.replay:replay",
    "what-if": "deploy.cli.replaying.what_if:what_if",
    "state": "deploy.cli.replaying.state:state",
    "diff": "deploy.cli.replaying.diff:diff",
    "bisect": "deploy.cli.replaying.bisect:bisect",
    "log": "deploy.cli.logs.log:log",
    "backup": "deploy.cli.logs.backup:backup",
    "restore": "deploy.cli.logs.restore:restore",
    "alerts": "deploy.cli.asking.alerts:alerts",
    "failed": "deploy.cli.asking.failed:failed",
    "patterns": "deploy.cli.guarding.patterns:patterns",
    "precedents": "deploy.cli.guarding.precedents:precedents",
    "keys": "deploy.cli.guarding.keys:keys",
    "allowances": "deploy.cli.guarding.allowances:allowances",
    "router": "deploy.cli.tuning.router:router",
    "train": "deploy.cli.tuning.train:train",
    "breaker": "deploy.cli.guarding.breaker:breaker",
    "guardrails": "deploy.cli.guarding.guardrails:guardrails",
    "review": "deploy.cli.guarding.review:review",
    "drift": "deploy.cli.tuning.drift:drift",
    "regulator": "deploy.cli.tuning.regulator:regulator",
    "reflection": "deploy.cli.tuning.reflection:reflection",
    "simulate": "deploy.cli.tuning.simulate:simulate",
    "forget": "deploy.cli.logs.forget:forget",
    "config": "deploy.cli.running.config:config",
    "doctor": "deploy.cli.running.doctor:doctor",
    "schema": "deploy.cli.running.schema:schema",
    "deploy": "deploy.cli.deploying:deploy",
    "bench": "deploy.cli.running.bench:bench",
}
"""Command -> ``module:function``, in the order of the help. To add one, add its line here."""


class _Neuraxis(Commands):
    """A group that loads a command's module when the command is named, and turns every error into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def hint(self, name: str, known: Sequence[str]) -> str:
        """Return the nearest command, or nothing if none is near: the help, to which the error points, lists all."""
        near = nearest_name(name, known)
        return f": did you mean {near!r}?" if near else "."

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. If the reader of its output is gone (``| head``), that is no failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Handled here, since click would make it a failure. stdout becomes /dev/null, or Python would complain at
            # exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; ends the process with the exit status of ``deploy.cli.failures``."""
        # A command's time counts from here: on a busy machine, importing the command takes a second of it.
        extra.setdefault("obj", time.monotonic())
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            try:
                status = super().main(args, prog_name or "neuraxis", complete_var, standalone_mode=False, **extra)
            except click.exceptions.NoArgsIsHelpError as bare:
                # A group without a command is a question, not a mistake: show its help.
                click.echo(bare.ctx.get_help() if bare.ctx is not None else bare.format_message())
                status = 0
        except click.exceptions.Abort:
            # Ctrl-C. It may have cut off an import, so nothing more is imported.
            say("neuraxis: interrupted", err=True)
            status = INTERRUPTED
        except Exception as error:
            from deploy.cli.failures import explain

            line, status = explain(error)
            say(f"neuraxis: {line}", err=True)
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    name="neuraxis",
    cls=_Neuraxis,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog='Start with `neuraxis up` in one terminal, and in another: neuraxis ask "What is the capital of Peru?"',
)
@click.version_option(package_name="neuraxis")
def main() -> None:
    """A decision control plane for LLM agents: every decision explained and replayable.

    Exit status: 0 good, 1 a check failed, 2 wrong use or configuration, 3 broker not reachable.
    """
