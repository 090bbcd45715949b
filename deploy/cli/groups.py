"""Groups of commands: each listed with its whole first sentence, and a wrong name answered with the nearest."""

from collections.abc import Sequence
from difflib import get_close_matches
from inspect import cleandoc

import click


class Commands(click.Group):
    """A group whose help cuts no sentence, and that says which commands there are when a name is none of them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with the first sentence of its help; a long one takes a second line."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, first_sentence(command)) for name, command in found if command and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; a usage error names the nearest one, or all."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}{self.hint(args[0], known)}")
        return super().resolve_command(ctx, args)

    def hint(self, name: str, known: Sequence[str]) -> str:
        """Return what follows an unknown name: the nearest command, else all of them."""
        near = get_close_matches(name, known, n=1)
        if near:
            return f": did you mean {near[0]!r}?"
        return f": there {'is' if len(known) == 1 else 'are'} {', '.join(known)}."


def first_sentence(command: click.Command) -> str:
    """Return what a command does, in the first sentence of its help."""
    paragraph = " ".join(cleandoc(command.help or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".") + "."
