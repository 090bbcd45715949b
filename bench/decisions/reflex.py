"""Reflex: the cost of judging a text, as it is and with all views (encodings undone), compared with two peers.

The peers are a loop of ``in`` and one compiled ``re`` alternation. Both do less: they lower the case and nothing else
(no look-alikes, no invisible characters, no white space runs; the loop has no word boundaries either). Hostile texts
have a mebibyte each, and are made to be slow. How much reflex detects is measured by
``bench.quality.reflex_detection``. Run this with ``python -m bench.decisions.reflex``.
"""

import random
import re
import time
from base64 import b64encode
from typing import Any

import msgspec

from actors.reflex.decider import judge
from actors.reflex.library import Library, library_of, make_library
from actors.reflex.matcher import compile_library
from actors.reflex.settings import ReflexSettings
from bench.harness.table import is_brief, percentiles, record
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.patterns import PatternSet

SYNTHETIC_SIGNATURES = 10_000
"""Phrases of the library that is made of random words."""

KIB = 1024
MIB = 1024 * KIB
SECONDS_PER_CASE = 1.0
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Times are microseconds per text; ratios say how many times as long as reflex without views peers take.

    ``build_ms`` is what compiling the library takes, once per process. 0 stands for what was not measured.
    """

    library: str
    signatures: int
    text: str
    size: int
    hits: int
    build_ms: float
    p50_us: float
    p99_us: float
    views_p50_us: float
    views_p99_us: float
    loop_p50_us: float
    re_p50_us: float
    loop_ratio: float
    re_ratio: float


def _vocabulary(rng: random.Random, count: int) -> list[str]:
    # Frequent letters first, so that words share prefixes as those of a language do.
    weights = range(len(_LETTERS), 0, -1)
    return ["".join(rng.choices(_LETTERS, weights=weights, k=rng.randint(3, 9))) for _ in range(count)]


def synthetic_library(rng: random.Random, words: list[str], count: int = SYNTHETIC_SIGNATURES) -> Library:
    """Return a library of ``count`` phrases of two to four of the words the texts are made of."""
    phrases: dict[str, None] = {}
    while len(phrases) < count:
        phrases[" ".join(rng.choices(words, k=rng.randint(2, 4)))] = None
    pattern = PatternSet(name="synthetic", action="BLOCK", confidence=0.9, signatures=tuple(phrases))
    return make_library((pattern,))


def _text(rng: random.Random, words: list[str], size: int) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        word = rng.choice(words)
        word = word.capitalize() if rng.random() < 0.1 else word
        parts.append(word + rng.choice([" ", " ", " ", " ", ", ", ". ", "\n"]))
        length += len(parts[-1])
    return "".join(parts)[:size]


def _quoted(text: str) -> str:
    """Return the text with typographic quotes and accents in it, so that it is not ASCII."""
    return text.replace(". ", ".” “").replace("ea", "éa")


def hostile_texts(rng: random.Random, prose: str) -> dict[str, str]:
    """Return what attackers send to keep a matcher busy: a mebibyte of each."""
    marks = "\u0301\u0327\u0336\u0308\u0345\u0e31"
    units = {
        "zero-width": "d\u200ba\u200cn\u200d ",
        "newlines": "a\n",
        "one word": "a",
        "scripts": "aбαע字한",
        "Hangul": "한국",
        "ligatures": "ﬃ",
        "emoji": "👩\u200d👩\u200d👧\u200d👦 ",
        "surrogates": "\ud800",
        "hits": "dan mode ",
        "near misses": "xdan modex",
        "leetspeak": "1gn0r3 pr3v10us ",
        "rot13": "qna zbqr ",
        "percent signs": "%",
        "percent escapes": "%41",
        "hex": "0x41 0x41 0x41 0x41 0x4 ",
        "short base64": "aB3d ",
    }
    return {
        "marks": "".join(rng.choices(marks, k=MIB)),
        "base64 twice": b64encode(b64encode(prose.encode())).decode()[:MIB],
        "base64 of noise": " ".join(b64encode(rng.randbytes(9)).decode() for _ in range(MIB // 13)),
        "hex of noise": rng.randbytes(MIB // 3).hex(" "),
        **{name: (unit * (MIB // len(unit) + 1))[:MIB] for name, unit in units.items()},
    }


def _case(name: str, library: Library, kind: str, text: str, *, peers: bool) -> Row:
    start = time.perf_counter()
    matcher = compile_library.__wrapped__(library)
    build_ms = (time.perf_counter() - start) * 1e3
    phrases = [signature.text for _, signature in library.signatures()]
    alternation = re.compile(r"\b(?:" + "|".join(map(re.escape, phrases)) + r")\b") if peers else None
    received = InputReceived(text=text)
    plain, views = ReflexSettings(decoded_views=()), ReflexSettings()

    def loop() -> list[str]:
        lowered = text.lower()
        return [phrase for phrase in phrases if phrase in lowered]

    p50, p99 = percentiles(lambda: judge(matcher, plain, received), SECONDS_PER_CASE)
    views_p50, views_p99 = percentiles(lambda: judge(matcher, views, received), SECONDS_PER_CASE)
    loop_p50 = percentiles(loop, SECONDS_PER_CASE)[0] if peers else 0.0
    re_p50 = percentiles(lambda: alternation.findall(text.lower()), SECONDS_PER_CASE)[0] if alternation else 0.0
    return Row(
        library=name,
        signatures=len(phrases),
        text=kind,
        size=len(text),
        hits=len(matcher.find(text, 32).hits),
        build_ms=round(build_ms, 1),
        p50_us=round(p50, 1),
        p99_us=round(p99, 1),
        views_p50_us=round(views_p50, 1),
        views_p99_us=round(views_p99, 1),
        loop_p50_us=round(loop_p50, 1),
        re_p50_us=round(re_p50, 1),
        loop_ratio=round(loop_p50 / p50, 1),
        re_ratio=round(re_p50 / p50, 1),
    )


def run() -> list[Row]:
    """Measure every case; takes about three minutes."""
    rng = random.Random(20240917)
    words = _vocabulary(rng, 4000)
    libraries = {"synthetic": synthetic_library(rng, words)}
    if not is_brief():
        libraries = {"seed": library_of("seed"), "standard": library_of("standard"), **libraries}
    rows: list[Row] = []
    for size in (2 * KIB, 100 * KIB):
        text = _text(rng, words, size)
        encoded = b64encode(text.encode()).decode()[:size]
        for name, library in libraries.items():
            phrase = next(library.signatures())[1].text
            rows.append(_case(name, library, "ascii", text, peers=True))
            rows.append(_case(name, library, "typographic", _quoted(text), peers=False))
            rows.append(_case(name, library, "ascii, hit at the end", f"{text} {phrase}", peers=False))
            rows.append(_case(name, library, "base64", encoded, peers=False))
    standard = libraries.get("standard")
    if standard is None:
        return rows
    for name, text in hostile_texts(rng, _text(rng, words, MIB)).items():
        rows.append(_case("standard", standard, f"hostile: {name}", text, peers=False))
    return rows


def main() -> None:
    """Print the rows as a table."""
    found = run()
    record(found)
    rows: list[dict[str, Any]] = [msgspec.structs.asdict(row) for row in found]
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    print("  ".join(key.rjust(width) for key, width in widths.items()))
    for row in rows:
        print("  ".join(str(row[key]).rjust(width) for key, width in widths.items()))


if __name__ == "__main__":
    main()
