"""``neuraxis bench``."""

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from deploy.cli.command_types import command
from deploy.cli.options import examples, whole_number
from deploy.cli.outcomes import CheckFailed
from deploy.cli.replaying.plot_option import check_folder

BENCHES = {
    "append": "fenced append and group commit, against raw nats-py",
    "bounds": "what the most expensive inputs cost reflex, intuition and appraisal, and what they leave unread",
    "dashboard": "the dashboard in Chromium while exchanges end at 100/s: its frames, and the delay until one is shown",
    "detection": "the learned guards' cost a text; shares of attacks found: python -m bench.quality.detection PROMPTS",
    "event_loops": "an exchange on uvloop and on asyncio's own event loop",
    "exchanges": "exchanges that a set answers itself, its start, memory and disk, against four hops in FastStream",
    "growth": "appends, fences and reads as the log grows",
    "guards": "an input on its way through the guards to the arbiter, against as many hops in FastStream",
    "hops": "four persisted hops, against FastStream",
    "intuition": "nearest precedent of a million, against plain scans",
    "ledger": "ledger append and fold, against eventsourcing and raw sqlite3",
    "memory": "recall over many episodes, against numpy brute force",
    "pass_through": "a request that passes through to another's model, against a bare proxy",
    "path": "one exchange step by step: events, flushes, allocations, wake-ups, processor time of each part",
    "questions": "state, diff, bisect and why as a ledger grows; bytes an event in ledger and stream, memory a session",
    "reflex": "pattern matching, against a loop of `in` and one regular expression",
    "replay": "fold and verification of a ledger, against reading and decoding alone, and their memory",
    "router": "the cost of a mode selection",
    "self_review": "the cost of a tick, and of the counterfactual in it",
    "senses": "judging an input by reflex, intuition and appraisal together: python -m bench.decisions.senses PROMPTS",
    "sessions": "the memory that an open session takes, with 10,000 of them, and whether they make an exchange slower",
    "soak": "an hour at 70% of the most a set can do: memory, lag and latency by the minute",
    "turns": "the cost of telling a turn's kind; shares routed right: python -m bench.quality.turns LABELLED PROMPTS",
}
"""Benchmark -> what it measures, and against which peers: other programs for the same work, in the same run.

A hop is a message that one process appends to the log and the next one reads and answers."""

_FOLDERS = {
    "storage": ("append", "growth", "ledger", "questions", "replay"),
    "decisions": ("bounds", "intuition", "memory", "reflex", "router", "self_review", "senses"),
    "system": ("dashboard", "event_loops", "exchanges", "guards", "hops", "pass_through", "path", "sessions", "soak"),
    "quality": ("detection", "turns"),
}
"""Folder of ``bench`` -> the benchmarks in it."""


def module_of(name: str) -> str:
    """Return the module of a benchmark."""
    return next(f"bench.{folder}.{name}" for folder, names in _FOLDERS.items() if name in names)


IN_BRIEF = (
    *("reflex", "intuition", "router", "guards", "hops", "exchanges", "append", "ledger", "replay", "growth"),
    "memory",
)
"""What is run, in brief, if none is named: what tells whether the project's performance aims are met (the table of
``bench.harness.aims``), or how cost grows with size."""

BRIEF, RECORDS = "NEURAXIS_BENCH_BRIEF", "NEURAXIS_BENCH_RECORDS"
"""Environment variables of the benchmarks (``bench.harness.table``)."""


@command(
    epilog=examples(
        "neuraxis bench",
        "neuraxis bench append ledger",
        "neuraxis bench --json bench.json --plot plots",
        "neuraxis bench detection --llm http://127.0.0.1:11434/v1 --corpus prompts.jsonl --record answers.jsonl",
    )
)
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHES)), metavar="[NAME]...")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write all figures to this file, as JSON.")
@click.option("--plot", type=click.Path(file_okay=False), help="Draw cost against size into this folder, as SVG.")
@click.option("--llm", metavar="URL|local", help="Measure what a language model's judgement adds to detection.")
@click.option("--corpus", type=click.Path(exists=True, dir_okay=False), help="With --llm: labelled prompts to judge.")
@click.option("--model", metavar="NAME", help="With --llm: the model there, instead of llm.models.appraise.")
@click.option(
    "--rows",
    type=whole_number(4),
    help="With --llm: prompts to judge, a quarter each of direct and indirect attacks, benign and hard benign ones.",
)
@click.option(
    "--gate",
    type=click.Choice(["llm", "both"]),
    help="With --llm: ask about prompts that appraisal leaves open without it, or (both) about all that it lets pass.",
)
@click.option("--characters", type=whole_number(256), help="With --llm: characters of a prompt shown at most.")
@click.option("--record", type=click.Path(dir_okay=False), help="With --llm: file that keeps the answers, for reruns.")
def bench(names: tuple[str, ...], json_file: str | None, plot: str | None, **llm_options: str | int | None) -> None:
    """Measure beside the peers, in the same run: the benchmarks NAMED, or in brief what tells whether the aims are met.

    In brief takes some ten minutes, and ends with a table of all aims. Peers are an extra: pip install
    'neuraxis[bench]'. Ratios tell more than figures on a shared machine.
    """
    if any(value is not None for value in llm_options.values()):
        if json_file is not None or plot is not None:
            raise click.UsageError("--json and --plot are for the other benchmarks: with --llm, --record keeps answers")
        _measure_judgement(names, llm_options)
        return
    options = [f"--json={json_file}"] if json_file is not None else []
    if plot is not None:
        check_folder(Path(plot))
        options.append(f"--plot={plot}")
    with tempfile.TemporaryDirectory(prefix="neuraxis-bench-") as folder:
        failed, lacking = _run_all(names or IN_BRIEF, folder, brief=not names)
        command = [sys.executable, "-m", "bench.harness.report", folder, *options, *(names or IN_BRIEF)]
        if subprocess.run(command, check=False).returncode:
            failed.append("the table of aims")
    complaints = [f"these benchmarks did not finish: {', '.join(failed)}"] if failed else []
    if lacking:
        complaints.append(_install_hint(lacking))
    if complaints:
        raise CheckFailed("; ".join(complaints))


def _run_all(names: Sequence[str], folder: str, *, brief: bool) -> tuple[list[str], set[str]]:
    """Run benchmarks, which record what they find in a folder; return those that failed, and missing packages."""
    failed: list[str] = []
    missing = {name: modules for name in names if (modules := missing_modules(module_of(name)))}
    lacking = {module for modules in missing.values() for module in modules}
    if 0 < len(missing) < len(names):  # said first, since the others take minutes
        click.echo(f"{', '.join(missing)} will not run: {_install_hint(lacking)}", err=True)
    environment = {**os.environ, RECORDS: folder, **({BRIEF: "1"} if brief else {})}
    for name in names:
        if name in missing:
            continue
        click.echo(f"== {name}: {BENCHES[name]}")
        # A process for each: one benchmark's memory and threads must not disturb the next one.
        if subprocess.run([sys.executable, "-m", module_of(name)], check=False, env=environment).returncode:
            failed.append(name)
    return failed, lacking


def _install_hint(modules: Iterable[str]) -> str:
    return f"{', '.join(sorted(modules))} not installed: pip install 'neuraxis[bench]'"


def _measure_judgement(names: tuple[str, ...], llm_options: Mapping[str, str | int | None]) -> None:
    """Run the part of ``detection`` that asks a language model to judge prompts."""
    if names != ("detection",) or llm_options["llm"] is None or llm_options["corpus"] is None:
        raise click.UsageError(
            "a model's judgement is measured by `neuraxis bench detection --llm URL --corpus FILE`; "
            "--model, --rows, --gate, --characters and --record go with it"
        )
    if missing := missing_modules("bench.quality.judgement"):
        raise CheckFailed(_install_hint(missing))
    options = [f"--{name}={value}" for name, value in llm_options.items() if name != "corpus" and value is not None]
    if subprocess.run(
        [sys.executable, "-m", "bench.quality.judgement", str(llm_options["corpus"]), *options], check=False
    ).returncode:
        raise CheckFailed("the benchmark did not finish")


def missing_modules(module: str) -> list[str]:
    """Return the packages that a module of ``bench`` imports, directly or not, and that are not installed; sorted.

    The source is read, not imported: the import would run it, and end in a traceback.
    """
    seen, unread, packages = {module}, [module], set()
    while unread:
        spec = find_spec(unread.pop())
        if spec is None or spec.origin is None:
            continue
        for node in ast.parse(Path(spec.origin).read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                if name.startswith("bench.") and name not in seen:
                    seen.add(name)
                    unread.append(name)
                packages.add(name.partition(".")[0])
    return sorted(package for package in packages if find_spec(package) is None)
