"""Reports what a run of benchmarks found of the aims: as a table, as JSON, and as drawings.

Run by ``neuraxis bench`` as ``python -m bench.harness.report RECORDS [--json FILE] [--plot FOLDER] NAME...``, where the
folder RECORDS holds what the benchmarks recorded, and NAME are those that were to run.
"""

import argparse
import json
from pathlib import Path

import msgspec

from bench.harness.aims import AIMS, Outcome, Records, outcomes, table
from bench.harness.curves import drawings


def encode(records: Records, found: list[Outcome]) -> bytes:
    """Return a run as JSON: ``aims`` and, below ``benchmarks``, the rows of each."""
    return msgspec.json.format(msgspec.json.encode({"aims": found, "benchmarks": records})) + b"\n"


def main() -> None:
    """Print the table, and write the files that are asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("records", type=Path)
    options.add_argument("names", nargs="+")
    options.add_argument("--json", type=Path)
    options.add_argument("--plot", type=Path)
    given = options.parse_args()
    records = {file.stem: json.loads(file.read_bytes()) for file in sorted(given.records.glob("*.json"))}
    found = outcomes(records, [aim for aim in AIMS if aim.bench in given.names])
    if found:
        print(f"\n{table(found)}")
    if given.json is not None:
        given.json.write_bytes(encode(records, found))
    if given.plot is not None:
        given.plot.mkdir(exist_ok=True)
        for name, drawing in drawings(records).items():
            (given.plot / name).write_bytes(drawing)
            print(f"drawn: {given.plot / name}")


if __name__ == "__main__":
    main()
