"""``neuraxis deploy compose``, ``systemd`` and ``helm``: files by which others run the processes of a deployment."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli.command_types import command
from deploy.cli.options import FILE, FOLDER, examples, several
from deploy.cli.outcomes import WrongUse

if TYPE_CHECKING:
    from deploy.deploying.plan import Deployment
    from deploy.deploying.writing_files import Files


_files_options = several(
    click.option("--out", required=True, type=FOLDER, metavar="DIR", help="Folder to write to; made if need be."),
    click.option("--force", is_flag=True, help="Replace files that are there with other content."),
    click.option(
        "--group", "groups", multiple=True, metavar="NAME=ACTOR,...*REPLICAS",
        help="Run these actors in one process, so many times; others stay in the default groups.",
    ),
    click.option(
        "--config", "config_file", type=FILE,
        help="Configuration of all processes.  [default: neuraxis.toml in DIR if there is one]",
    ),
)  # fmt: skip
"""The options of a command that writes a deployment's files."""


def _image(_ctx: click.Context, _option: click.Parameter, image: str) -> str:
    if not image.isprintable() or " " in image:
        raise click.BadParameter(f"{image!r} is no image: write NAME:TAG, without spaces")
    return image


_image_option = click.option(
    "--image", default="", metavar="NAME:TAG", callback=_image,
    help="The image to run.  [default: neuraxis, tagged with this release]",
)  # fmt: skip


@command(
    epilog=examples(
        "neuraxis deploy compose --out deployment",
        "neuraxis deploy compose --out deployment --force --group gateway=gateway*4",
    )
)
@_files_options
@_image_option
def compose(out: Path, force: bool, groups: Sequence[str], config_file: Path | None, image: str) -> None:
    """Write a file for Docker Compose: a service for each group of actors, hardened, with secrets by file."""
    from deploy.deploying.compose import compose_files

    deployment = _deployment(out, config_file, groups)
    _write(out, compose_files(deployment, image or f"neuraxis:{deployment.version}"), deployment, force)


@command(
    epilog=examples(
        "neuraxis deploy systemd --out deployment --program /opt/neuraxis/bin/neuraxis",
        "neuraxis deploy systemd --out second --config deployment/neuraxis.toml --only senses --only gateway",
    )
)
@_files_options
@click.option(
    "--program", default="/opt/neuraxis/bin/neuraxis", show_default=True, metavar="FILE", help="Where neuraxis is."
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only these groups, on a machine that does not run the others."
)
def systemd(
    out: Path, force: bool, groups: Sequence[str], config_file: Path | None, program: str, only: Sequence[str]
) -> None:
    """Write systemd units: a template for workers, the gateway and a target, hardened, with secrets as credentials."""
    from deploy.config.loading import DEFAULT_FILE
    from deploy.deploying.systemd import systemd_files

    if not program.startswith("/") or not program.isprintable() or set(program) & set(" %$\"'\\"):
        raise WrongUse(f"--program {program!r}: write an absolute path without spaces and signs that systemd reads")
    deployment = _deployment(out, config_file, groups)
    if only:
        names = [process.name for process in deployment.processes]
        if unknown := [name for name in only if name not in names]:
            raise WrongUse(f"--only {', '.join(unknown)}: there is no such group: there are {', '.join(names)}")
        chosen = tuple(process for process in deployment.processes if process.name in only)
        deployment = msgspec.structs.replace(deployment, processes=chosen)
    _write(out, systemd_files(deployment, program), deployment, force, other_machines=bool(only))
    if only and config_file is None and not (out / DEFAULT_FILE).exists():
        note = f"There is no {out / DEFAULT_FILE}: these processes have the default settings."
        click.echo(f"{note} Name the file of the other machines with --config.", err=True)


@command(epilog=examples("neuraxis deploy helm --out deployment --image registry.example/neuraxis:0.1.0"))
@_files_options
@_image_option
def helm(out: Path, force: bool, groups: Sequence[str], config_file: Path | None, image: str) -> None:
    """Write a Helm chart for Kubernetes, and a kustomization that makes its Secrets of files."""
    from deploy.deploying.helm import helm_files

    deployment = _deployment(out, config_file, groups)
    _write(out, helm_files(deployment, image or f"neuraxis:{deployment.version}"), deployment, force)


def _deployment(out: Path, config_file: Path | None, groups: Sequence[str]) -> "Deployment":
    from importlib.metadata import version

    from deploy.config.loading import DEFAULT_FILE, all_sections, load, resolve
    from deploy.config.text_files import names_text_files
    from deploy.deploying.groups import chosen_groups
    from deploy.deploying.plan import LOGINS, deployment_of

    beside = out / DEFAULT_FILE
    file = config_file or (beside if beside.exists() else None)
    # Without the environment and the current folder: the same file gives the same deployment everywhere.
    sections = all_sections()
    config = resolve(sections, []) if file is None else load(sections, file=file, environment={})
    if file is not None and names_text_files(file):
        raise WrongUse(f"{file} names other files, which are not on the machines of the deployment: put their texts in")
    return deployment_of(
        config,
        chosen_groups(config, groups),
        configuration=_content(file) if file is not None else b"",
        version=version("neuraxis"),
        logins=out / LOGINS,
    )


def _content(file: Path) -> bytes:
    from deploy.config.text_files import read_bounded

    # A pipe can be read only once: ``read_bounded`` keeps what it has read.
    return file.read_bytes() if file.is_file() else read_bounded(file).encode()


def _write(out: Path, files: "Files", deployment: "Deployment", force: bool, *, other_machines: bool = False) -> None:
    """Write the files, and say what is missing; ``other_machines``: other machines run the remaining processes."""
    from deploy.deploying.writing_files import FilesExist, write_files

    try:
        written = write_files(out, files, force=force)
    except FilesExist as there:
        raise WrongUse(str(there)) from there
    except OSError as wrong:
        raise WrongUse(f"{wrong.filename or out} cannot be written: {wrong.strerror or wrong}") from wrong
    for path in written:
        click.echo(path)
    if missing := [secret.source for secret in deployment.secrets if not (out / secret.source).exists()]:
        click.echo(f"Before the start, put these into {out}: {', '.join(missing)}", err=True)
        if other_machines:
            click.echo("Copy those of the other machines: the broker would not know logins made anew.", err=True)
            return
        click.echo(f"Logins are made by: neuraxis deploy nats-conf --out {out} {' '.join(deployment.logins)}", err=True)
