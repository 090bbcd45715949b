"""``neuraxis log test``."""

from pathlib import Path

import click

from deploy.cli.command_types import command
from deploy.cli.options import FILE, examples, json_option, models_option
from deploy.cli.outcomes import CheckFailed
from deploy.cli.output import print_json
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.wrapped_lines import say


@command(
    epilog=examples(
        "neuraxis log test tests/decisions/polite-override.nxb",
        "neuraxis log test tests/decisions/polite-override.nxb --config neuraxis.toml --json",
    )
)
@click.argument("bundles", nargs=-1, required=True, metavar="BUNDLE...", type=click.Path(path_type=Path))
@click.option(
    "--config", "config_file", type=FILE, metavar="FILE",
    help="Decide the recorded inputs anew under these settings.  [default: as they were recorded]",
)  # fmt: skip
@models_option
@json_option
def test(bundles: tuple[Path, ...], config_file: Path | None, models: str | None, as_json: bool) -> None:
    """Make the decisions in bundles again, and say whether they equal the recorded ones; the pytest plugin runs this.

    Under other settings, the first exchange that ends differently is named. Exit status 1 if any bundle fails.
    """
    from deploy.replaying.bundle_verdicts import decide_under_settings, verify_bundle

    failed = 0
    for bundle in bundles:
        verdict = verify_bundle(bundle) if config_file is None else decide_under_settings(bundle, config_file)
        failed += bool(verdict.complaint)
        if as_json:
            row = {"bundle": str(bundle), "ok": not verdict.complaint}
            print_json(row | {"summary": verdict.summary, "complaint": verdict.complaint})
        else:
            say(f"{bundle}: {verdict.complaint or verdict.summary}")
    if failed:
        raise CheckFailed(
            f"{counted(failed, 'bundle')} of {len(bundles)}: decisions come out otherwise, or none is tested"
        )
