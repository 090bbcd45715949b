"""Write missing sample files: ``python -m tests.schemas.write_samples``. Existing ones are history, never touched."""

from pathlib import Path

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.event import encode_event

SAMPLES = Path(__file__).parent / "samples"


def sample_file(entry: Entry, version: int) -> Path:
    """Return where a body of a version of a subject is kept."""
    return SAMPLES / f"{entry.topic}.v{version}.json"


def write_missing() -> list[Path]:
    """Write a sample of the current version of each subject that has none; return the files written."""
    written = []
    for entry in CATALOGUE.values():
        file = sample_file(entry, entry.version)
        if not file.exists():
            file.write_bytes(msgspec.json.format(encode_event(entry.sample), indent=2) + b"\n")
            written.append(file)
    return written


if __name__ == "__main__":
    for file in write_missing():
        print(file.name)
