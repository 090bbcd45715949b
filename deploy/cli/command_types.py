"""The click classes of all commands and groups."""

import re
from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any

import click

from schemas.intake.blank import is_blank
from schemas.intake.nearest_name import nearest_name

_SURROGATE = re.compile("[\ud800-\udfff]")
"""A surrogate: Python puts one in place of each byte of an argument that is not UTF-8."""


class Command(click.Command):
    """A command that refuses blank options and paths, arguments not in UTF-8, and a single-valued option given twice.

    A blank value usually comes from a shell variable that is not set. It must not mean the same as no option:
    ``log export --agent "$WHO"`` would write everybody's words. A blank path would be the working folder. If an option
    is given twice, only the last value would count: ``log export --session a --session b`` would leave one out.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; raises BadParameter for a blank option or path, and for an option that is given twice."""
        try:
            return self._parsed(ctx, args)
        except click.UsageError as wrong:
            takes_text = any(each.name == "text" for each in self.params if isinstance(each, click.Argument))
            if not (hint := _hint_for_text(wrong, args) if takes_text else ""):
                raise
            raise click.UsageError(f"{wrong.format_message().removesuffix('.')}{hint}", ctx) from wrong

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        given, _, in_order = self.make_parser(ctx).parse_args(list(args))
        for parameter in self.get_params(ctx):
            if not isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Path):
                continue
            if in_order.count(parameter) > 1 and not (parameter.multiple or getattr(parameter, "is_flag", False)):
                raise click.BadParameter("it is given twice: it takes one value", ctx, parameter)
            values = given.get(parameter.name or "")
            for value in values if isinstance(values, list | tuple) else [values]:
                if isinstance(value, str) and is_blank(value):
                    rest = "" if parameter.required else ", or leave it out"
                    raise click.BadParameter(f"it is blank: write a word{rest}", ctx, parameter)
        unparsed = super().parse_args(ctx, args)
        for parameter in self.get_params(ctx):
            if isinstance(parameter.type, click.types.StringParamType) and "FILE" not in (parameter.metavar or ""):
                _check_text(ctx, parameter)
        return unparsed


def _hint_for_text(wrong: click.UsageError, args: Sequence[str]) -> str:
    """Return what to do if somebody wrote a text as several arguments, or one that reads as an option."""
    if "unexpected extra argument" in wrong.message:
        return ": put TEXT in quotes"
    if isinstance(wrong, click.NoSuchOption) and any(each.startswith("-") and " " in each for each in args):
        return ": write -- before a TEXT that begins with a dash"
    return ""


def _check_text(ctx: click.Context, parameter: click.Parameter) -> None:
    values = ctx.params.get(parameter.name or "")
    for value in values if isinstance(values, tuple) else [values]:
        if isinstance(value, str) and (found := _SURROGATE.search(value)):
            raise click.BadParameter(f"character {found.start() + 1} is not UTF-8: write it so", ctx, parameter)


def command(**attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a :class:`Command` of a function, as ``click.command`` does."""
    return click.command(cls=Command, **attributes)


class Commands(click.Group):
    """A group whose help shows whole sentences, and whose error for an unknown command names the known ones."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with the first sentence of its help; a long sentence is wrapped."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, first_sentence(command)) for name, command in found if command and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; if there is none, the error names the nearest command, or all."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}{self.hint(args[0], known)}")
        return super().resolve_command(ctx, args)

    def hint(self, name: str, known: Sequence[str]) -> str:
        """Return the hint for an unknown name: the nearest command, or else all of them."""
        if near := nearest_name(name, known):
            return f": did you mean {near!r}?"
        return f": there {'is' if len(known) == 1 else 'are'} {', '.join(known)}."


def first_sentence(command: click.Command) -> str:
    """Return what a command does, in the first sentence of its help."""
    paragraph = " ".join(cleandoc(command.help or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".") + "."
