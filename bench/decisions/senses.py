"""The senses, which are the actors that read an input's text: what judging it costs reflex, intuition and appraisal.

All texts are different. In each round, each text is judged once by all three, one after the other, as a worker does it:
a sense can use what the one before has cached, and no text was read before. Each round has a process of its own. Times
are CPU times, and for each text the lowest of the rounds counts: on a shared machine the 99th percentile would be
meaningless otherwise. Texts are prose and a mixture of code, mail, markup and encoded text; with files of prompts
(``{"text": ...}`` on each line) their rows, too. Run it with ``python -m bench.decisions.senses [PROMPTS...]``.
"""

import json
import random
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from actors.appraisal.appraising import appraise
from actors.appraisal.session_memory import SessionMemory
from actors.appraisal.settings import AppraisalSettings
from actors.intuition.judging import input_of
from actors.intuition.judging import judge as intuit
from actors.intuition.library import Library
from actors.intuition.settings import IntuitionSettings
from actors.reflex.decider import judge
from actors.reflex.library import library_of
from actors.reflex.matcher import compile_library
from actors.reflex.settings import ReflexSettings
from bench.harness.table import record
from schemas.vocabulary.gateway import InputReceived

SENSES = ("reflex", "intuition", "appraisal", "all")
"""What a row of the table is about; ``all``: the three together."""

ROUNDS = 3
SHORT, LONG = 2_000, 100_000
"""Sizes of texts, in characters."""

_COUNTS = {SHORT: 200, LONG: 8}
"""Size -> number of texts of each kind."""

_SENTENCES = (
    "The second version of the plan is not clear to me where it speaks of the storage.",
    "Could you tell me which of the two offers leaves more room for the autumn?",
    "The figures in the table add up to more than the disk can hold, and the backup is listed twice.",
    "Nobody is named for the night shift, so please ask {name} before Thursday.",
    "In {year} the north wall was measured again, and the drawings were wrong by {number} centimetres.",
    "My neighbour has kept bees for {number} years and says that the hives do well in most summers.",
)
_NAMES = ("Ilse", "Tomasz", "Amara", "Jo\u00e3o", "Wen", "Brigitte", "Oluwaseun", "Katarina")
_ENCODED_TEXT = "keep this for the archive of number "


class Cost(msgspec.Struct, frozen=True):
    """What judging a text of one kind costs a sense, in milliseconds of its process."""

    kind: str
    sense: str
    texts: int
    p50_ms: float
    p99_ms: float


def _sentence(draw: random.Random) -> str:
    sentence = draw.choice(_SENTENCES)
    return sentence.format(name=draw.choice(_NAMES), year=draw.randint(1850, 2024), number=draw.randint(2, 99))


def _piece(draw: random.Random) -> str:
    """Return a paragraph of one of many kinds."""
    words = [_sentence(draw) for _ in range(draw.randint(1, 4))]
    number = draw.randint(1, 10**6)
    return draw.choice(
        (
            " ".join(words),
            "\n".join(f"- \u201c{each}\u201d" for each in words),
            json.dumps({f"field_{index}": each for index, each in enumerate(words)}, indent=1),
            f"def handle_{number}(self, request_id: int) -> dict[str, str]:\n    return self.store['{number}'].get()",
            f'<tr><td class="name">{words[0]}</td><td>{number}</td></tr>',
            f"> {words[0]}\n> On {number} wrote {draw.choice(_NAMES)}:\n",
            f"GET /v1/items?id={number}&q=caf%C3%A9%20au%20lait&sort=Price-Desc HTTP/1.1",
            f"data: {b64encode(f'{_ENCODED_TEXT}{number}'.encode()).decode()}",
            f"| {number} | {draw.choice(_NAMES)} | 2.{number % 10}.1 |",
            f"{number:x} {number * 7919:032x}",
        )
    )


def texts_of(kind: str, size: int, draw: random.Random) -> Iterator[str]:
    """Yield texts of a kind, ``prose`` or ``mixed``, no two alike."""
    while True:
        parts: list[str] = []
        while sum(map(len, parts)) < size:
            parts.append(_sentence(draw) + " " if kind == "prose" else _piece(draw) + "\n\n")
        yield "".join(parts)[:size]


def cases(rows: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts to judge, by kind; last come rows of some ``SHORT`` characters, and some joined to ``LONG``."""
    draw = random.Random(20240917)
    found: dict[str, list[str]] = {}
    for size, count in _COUNTS.items():
        for kind in ("prose", "mixed"):
            endless = texts_of(kind, size, draw)
            found[f"{size // 1_000} KB {kind}"] = [next(endless) for _ in range(count)]
    if rows:
        found[f"{SHORT // 1_000} KB rows"] = [row for row in rows if 0.75 * SHORT <= len(row) <= 1.25 * SHORT][:250]
        joined = ("\n".join(rows[index : index + 120])[:LONG] for index in range(0, len(rows), 120))
        found[f"{LONG // 1_000} KB rows"] = [text for text in joined if len(text) == LONG][:10]
    return {kind: texts for kind, texts in found.items() if texts}


def measure(texts: Sequence[str]) -> list[tuple[float, ...]]:
    """Return for each text the milliseconds that each sense and all of them took, judging it once."""
    matcher = compile_library(library_of("standard"))
    reflex, intuition, appraisal = ReflexSettings(), IntuitionSettings(), AppraisalSettings()
    found = []
    for text in texts:
        received = InputReceived(text=text)
        times = [time.process_time()]
        judge(matcher, reflex, received)
        times.append(time.process_time())
        intuit(Library(), intuition, input_of(received, intuition))
        times.append(time.process_time())
        appraise(SessionMemory(), received, appraisal)
        times.append(time.process_time())
        found.append((*(1e3 * each for each in np.diff(times).tolist()), 1e3 * (times[-1] - times[0])))
    return found


def costs(lowest_times: dict[str, list[list[float]]]) -> tuple[Cost, ...]:
    """Return percentiles of the lowest times of the texts."""
    return tuple(
        Cost(kind, sense, len(times), *(round(float(np.percentile(each, percent)), 2) for percent in (50, 99)))
        for kind, times in lowest_times.items()
        for sense, each in zip(SENSES, zip(*times, strict=True), strict=True)
    )


def one_round(files: Sequence[Path]) -> dict[str, list[tuple[float, ...]]]:
    """Judge all texts once, after a few others that make the senses load their models."""
    rows = [json.loads(line)["text"] for file in files for line in file.read_bytes().splitlines()]
    measure(["H\u00e9llo, how do I get there?", *_SENTENCES])
    return {kind: measure(texts) for kind, texts in cases(rows).items()}


def main() -> None:
    """Measure, each round in a process of its own, and print percentiles of the texts' lowest times; takes a minute."""
    files = sys.argv[1:]
    if files[:1] == ["--round"]:
        print(json.dumps(one_round(tuple(map(Path, files[1:])))))
        return
    least: dict[str, list[list[float]]] = {}
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "bench.decisions.senses", "--round", *files]
        done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        for kind, times in done.items():
            least[kind] = np.minimum(least.get(kind, times), times).tolist()
    found = costs(least)
    record(found)
    for cost in found:
        print(f"{cost.kind:14} {cost.sense:10} {cost.texts:4} p50 {cost.p50_ms:8.2f} ms  p99 {cost.p99_ms:8.2f} ms")


if __name__ == "__main__":
    main()
