"""``neuraxis schema``."""

import sys
from typing import Any

import click
import msgspec

from deploy.cli.command_types import Commands
from deploy.cli.options import examples, json_option
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import emit
from schemas.intake.nearest_name import nearest_name


@click.group(cls=Commands, epilog=examples("neuraxis schema subjects", "neuraxis schema asyncapi > asyncapi.json"))
def schema() -> None:
    """Print the catalogue of events."""


@schema.command(
    epilog=examples(
        "neuraxis schema subjects",
        "neuraxis schema subjects > subjects.md",
        "neuraxis schema subjects --json | jq -r .subject",
    )
)
@json_option
def subjects(as_json: bool) -> None:
    """List every subject, who may publish it and what it means; in Markdown where the output is no terminal."""
    from schemas.export import subjects_rows, subjects_table

    if not as_json and not sys.stdout.isatty():
        click.echo(subjects_table(), nl=False)
        return
    emit(subjects_rows(), as_json=as_json, columns=("subject", "owner", "scope", "version", "severity", "meaning"))


@schema.command(epilog=examples("neuraxis schema jsonschema > events.schema.json"))
@click.argument("topic", required=False)
def jsonschema(topic: str | None) -> None:
    """Print the JSON Schema of all events, or of TOPIC alone."""
    from schemas.catalogue import CATALOGUE
    from schemas.export import jsonschema_document

    if topic is not None and topic not in CATALOGUE:
        near = nearest_name(topic, CATALOGUE)
        meant = f"did you mean {near}?" if near else "`neuraxis schema subjects` lists all"
        raise WrongUse(f"{topic!r} is not in the catalogue: {meant}")
    _document(jsonschema_document(topic))


@schema.command(epilog=examples("neuraxis schema asyncapi > asyncapi.json"))
def asyncapi() -> None:
    """Print the AsyncAPI 3 document."""
    from schemas.export import asyncapi_document

    _document(asyncapi_document())


def _document(document: dict[str, Any]) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
