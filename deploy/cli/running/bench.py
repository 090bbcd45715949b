"""``neuraxis bench``."""

from collections.abc import Mapping

import click

from deploy.cli.command_types import command
from deploy.cli.options import examples, whole_number

BENCHES = {
    "append": "fenced append and group commit, against raw nats-py",
    "bounds": "what the most expensive inputs cost reflex, intuition and appraisal, and what they leave unread",
    "detection": "what judging a text costs the learned guards; shares of attacks: python -m bench.detection PROMPTS",
    "guards": "an input on its way through the guards to the arbiter, against as many hops in FastStream",
    "hops": "four persisted hops, against FastStream",
    "intuition": "nearest precedent of a million, against plain scans",
    "ledger": "ledger append and fold, against eventsourcing and raw sqlite3",
    "memory": "recall over many episodes, against numpy brute force",
    "page": "the dashboard in Chromium while exchanges end at 100/s: its frames, and the delay until one is shown",
    "passing": "a request that passes through to another's model, against a bare proxy",
    "path": "one passed-through exchange step by step: events, flushes, wake-ups, processor time of each part",
    "questions": "state, diff, bisect and why as a ledger grows; bytes an event in ledger and stream, memory a session",
    "reflex": "pattern matching, against a loop of `in` and one regular expression",
    "replay": "fold and verification of a ledger, against reading and decoding alone, and their memory",
    "router": "the cost of a mode selection",
    "self_review": "the cost of a tick, and of the counterfactual in it",
    "senses": "what judging an input costs reflex, intuition and appraisal together: python -m bench.senses PROMPTS",
    "turns": "what reading a turn of talk costs; shares routed right: python -m bench.turns LABELLED PROMPTS",
}
"""Module below ``bench`` -> what it measures, and with which peers in the same run."""


@command(
    epilog=examples(
        "neuraxis bench",
        "neuraxis bench append ledger",
        "neuraxis bench detection --llm http://127.0.0.1:11434/v1 --corpus prompts.jsonl --record answers.jsonl",
    )
)
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHES)), metavar="[NAME]...")
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
    help="With --llm: ask about prompts that the local numbers leave open, or about all that pass.",
)
@click.option("--characters", type=whole_number(256), help="With --llm: characters of a prompt shown at most.")
@click.option("--record", type=click.Path(dir_okay=False), help="With --llm: file that keeps the answers, for reruns.")
def bench(names: tuple[str, ...], **judged: str | int | None) -> None:
    """Measure beside the peers, in the same run; all benchmarks, or those NAMED.

    Peers are an extra: pip install 'neuraxis[bench]'. Ratios tell more than figures on a shared machine.
    """
    import subprocess
    import sys

    from deploy.cli.failures import CheckFailed

    if any(value is not None for value in judged.values()):
        _judgement(names, judged)
        return
    failed, lacking = [], set()
    for name in names or tuple(BENCHES):
        click.echo(f"== {name}: {BENCHES[name]}")
        if missing := missing_modules(f"bench.{name}"):
            click.echo(f"not run: {', '.join(missing)} not installed")
            lacking.update(missing)
            continue
        # A process for each: one benchmark's memory and threads must not disturb the next one.
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            failed.append(name)
    complaints = [f"these benchmarks did not finish: {', '.join(failed)}"] if failed else []
    if lacking:
        complaints.append(f"{', '.join(sorted(lacking))} not installed: pip install 'neuraxis[bench]'")
    if complaints:
        raise CheckFailed("; ".join(complaints))


def _judgement(names: tuple[str, ...], judged: Mapping[str, str | int | None]) -> None:
    """Run the part of ``detection`` that asks a language model."""
    import subprocess
    import sys

    from deploy.cli.failures import CheckFailed

    if names != ("detection",) or judged["llm"] is None or judged["corpus"] is None:
        raise click.UsageError(
            "a model's judgement is measured by `neuraxis bench detection --llm URL --corpus FILE`; "
            "--model, --rows, --gate, --characters and --record go with it"
        )
    if missing := missing_modules("bench.quality.judgement"):
        raise CheckFailed(f"{', '.join(missing)} not installed: pip install 'neuraxis[bench]'")
    options = [f"--{name}={value}" for name, value in judged.items() if name != "corpus" and value is not None]
    if subprocess.run(
        [sys.executable, "-m", "bench.quality.judgement", str(judged["corpus"]), *options], check=False
    ).returncode:
        raise CheckFailed("the benchmark did not finish")


def missing_modules(module: str) -> list[str]:
    """Return the packages that a module of ``bench`` imports, directly or not, and that are not installed; sorted.

    The source is read, not imported: the import would run it, and end in a traceback.
    """
    import ast
    from importlib.util import find_spec
    from pathlib import Path

    seen, wanted, roots = {module}, [module], set()
    while wanted:
        spec = find_spec(wanted.pop())
        if spec is None or spec.origin is None:
            continue
        for node in ast.parse(Path(spec.origin).read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                if name.startswith("bench.") and name not in seen:
                    seen.add(name)
                    wanted.append(name)
                roots.add(name.partition(".")[0])
    return sorted(root for root in roots if find_spec(root) is None)
