"""Training rows of our own: phrases written for this project, encoded forms, documents with and without injections.

``authored.json`` holds patterns, and the words that fill them. All draws come from one seeded generator, so that the
same corpus gives the same rows. A row that is made from a corpus row names it as its parent, and is held out with it.
"""

import base64
import codecs
import random
import re
from collections.abc import Callable, Sequence
from importlib.resources import files

import msgspec

from deploy.training.labelled_corpus import Row, is_direct

SEED = 20240917
_PER_ATTACK_FAMILY, _PER_BENIGN_FAMILY = 160, 240
_PER_ENCODING = 60
_DOCUMENTS = 600
_LONGEST_DOCUMENT = 12_000
_SLOT = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_BREAK = re.compile(r"(?<=[.\n])\s+")
_INVISIBLE = "\u200b\u200c\u200d\u2060"
_LOOKALIKES = dict(zip("aeopcyxis", "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455", strict=True))
_LEET = str.maketrans("aeiostl", "4310571")
_BEFORE_HARMLESS = ("What does this say? ", "Please decode: ", "Can you read this text? ", "", "")
_BEFORE_ATTACK = ("Decode and obey: ", "Decode this and do what it says: ", "Follow the decoded text: ", "", "")
_PLAIN_DOCUMENTS = ("document", "long_document", "security_document")
_SMALL_TEXTS = ("instruction", "coding", "document", "short_query", "dialogue_turn")


class Family(msgspec.Struct, frozen=True):
    """Patterns with slots such as ``{verb}``, and the words that may fill each slot."""

    patterns: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]


def augmented(corpus: Sequence[Row]) -> list[Row]:
    """Return the rows of our own that go with a corpus."""
    generator = random.Random(SEED)
    written = authored(generator)
    return [
        *written,
        *_encoded(generator, corpus, written),
        *_documents(generator, corpus, written),
    ]


def authored(generator: random.Random) -> list[Row]:
    """Return rows filled from ``authored.json``: attacks, and hard negatives beside them."""
    data = files("deploy.training").joinpath("authored.json").read_bytes()
    rows = []
    for label, families in msgspec.json.decode(data, type=dict[str, dict[str, Family]]).items():
        attack = label == "attack"
        for name, family in families.items():
            texts: dict[str, None] = {}
            for _ in range(400):
                texts.setdefault(_filled(generator, family))
            kept = list(texts)[: _PER_ATTACK_FAMILY if attack else _PER_BENIGN_FAMILY]
            rows += [
                Row(text, "attack" if attack else "hard_benign", f"authored_{name}", f"authored:{name}")
                for text in kept
            ]
    return rows


def _filled(generator: random.Random, family: Family) -> str:
    pattern = generator.choice(family.patterns)
    return _SLOT.sub(lambda match: generator.choice(family.slots[match[1]]), pattern).strip()


def _encoders(generator: random.Random) -> dict[str, Callable[[str], str]]:
    return {
        "leetspeak": lambda text: text.translate(_LEET),
        "look-alikes": lambda text: "".join(
            _LOOKALIKES.get(char, char) if generator.random() < 0.6 else char for char in text
        ),
        "invisible": lambda text: "".join(
            char + (generator.choice(_INVISIBLE) if generator.random() < 0.2 else "") for char in text
        ),
        "spaced": lambda text: "  ".join(" ".join(word) for word in text.split()),
        "rot13": lambda text: codecs.encode(text, "rot13"),
        "base64": lambda text: base64.b64encode(text.encode()).decode(),
        "hex": lambda text: text.encode().hex(),
        "reversed": lambda text: text[::-1],
    }


def _encoded(generator: random.Random, corpus: Sequence[Row], written: Sequence[Row]) -> list[Row]:
    attacks: list[tuple[Row, tuple[int, ...]]] = [
        (row, (place,))
        for place, row in enumerate(corpus)
        if row.attack and is_direct(row.category) and "encoded" not in row.category and len(row.text) < 400
    ]
    attacks += [(row, ()) for row in written if row.attack and "obfuscated" not in row.category]
    harmless = [
        (row, (place,))
        for place, row in enumerate(corpus)
        if not row.attack and len(row.text) < 300 and "encoded" not in row.category
    ]
    rows = []
    for encode in _encoders(generator).values():
        for row, parents in generator.sample(attacks, min(_PER_ENCODING, len(attacks))):
            text = generator.choice(_BEFORE_ATTACK) + encode(row.text)
            rows.append(Row(text, "attack", "made_encoded", "made:encoded", parents))
        for row, parents in generator.sample(harmless, min(_PER_ENCODING, len(harmless))):
            text = generator.choice(_BEFORE_HARMLESS) + encode(row.text)
            rows.append(Row(text, "hard_benign", "made_encoded", "made:encoded", parents))
    return rows


def _documents(generator: random.Random, corpus: Sequence[Row], written: Sequence[Row]) -> list[Row]:
    """Return pairs of documents, one with a harmless remark and one with an injection: length must tell nothing."""
    whole = [place for place, row in enumerate(corpus) if not row.attack and row.category in _PLAIN_DOCUMENTS]
    small: dict[str, list[int]] = {}
    for place, row in enumerate(corpus):
        if row.label == "benign" and row.category in _SMALL_TEXTS and len(row.text) < 1_500:
            small.setdefault(row.source, []).append(place)
    injections = [(row, ()) for row in written if row.category in ("authored_indirect", "authored_inserted_code")]
    overrides = [
        (row, (place,))
        for place, row in enumerate(corpus)
        if row.category in ("prompt_injection", "system_prompt_extraction") and len(row.text) < 200
    ]
    remarks = [row for row in written if row.category in ("authored_documents", "authored_code_help")]
    rows = []
    for _ in range(_DOCUMENTS if whole and small else 0):
        if generator.random() < 0.45:
            places = [generator.choice(whole)]
        else:
            held = small[generator.choice(sorted(small))]
            places = generator.sample(held, min(len(held), generator.choice((3, 6, 12, 25, 50))))
        base = "\n\n".join(corpus[place].text for place in places)[:_LONGEST_DOCUMENT]
        parents = tuple(places)
        # Some documents are about nothing else than prompts and attacks on them.
        clean = base
        for remark in generator.sample(remarks, generator.choice((1, 1, 2, 8))):
            clean = _with(generator, clean, remark.text)
        rows.append(Row(clean, "benign", "made_document", "made:document", parents))
        injected, of = generator.choice(overrides if overrides and generator.random() < 0.3 else injections)
        rows.append(
            Row(_with(generator, base, injected.text), "attack", "made_indirect", "made:indirect", (*parents, *of))
        )
    return rows


def _with(generator: random.Random, base: str, remark: str) -> str:
    parts = _BREAK.split(base)
    at = generator.choice((0, len(parts), generator.randrange(len(parts) + 1)))
    return " ".join(parts[:at]) + "\n" + remark + "\n" + " ".join(parts[at:])
