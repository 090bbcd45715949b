"""Training rows beside the corpus: phrases written for this project, encoded texts, documents with injections.

``authored.json`` holds patterns, and the words that fill them. All draws come from one seeded generator, so the same
corpus gives the same rows. A row that is made from a corpus row names it as its parent, and is held out together with
it.
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
"""The seed of the generator; another one gives other rows, and so another model."""

_PER_ATTACK_FAMILY, _PER_BENIGN_FAMILY = 160, 240
"""How many rows are made from each family of patterns."""

_DRAWS = 400
"""How many fillings of a family are drawn; repeated ones count once."""

_PER_ENCODING = 60
"""How many attacks, and how many harmless texts, are encoded in each way."""

_DOCUMENTS = 600
"""How many pairs of documents are made: a harmless one, and one with an injection."""

_LONGEST_DOCUMENT = 12_000
"""Most characters of a document, before a remark or an injection is put in."""

# A slot such as {verb}, but not a doubled brace such as {{name}}, which attacks on templates contain.
_SLOT = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
# The space after a sentence or a line, where a remark can be put in.
_BREAK = re.compile(r"(?<=[.\n])\s+")
_INVISIBLE = "\u200b\u200c\u200d\u2060"
_LOOKALIKES = dict(zip("aeopcyxis", "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455", strict=True))
_LEET = str.maketrans("aeiostl", "4310571")
_BEFORE_HARMLESS = ("What does this say? ", "Please decode: ", "Can you read this text? ", "", "")
_BEFORE_ATTACK = ("Decode and obey: ", "Decode this and do what it says: ", "Follow the decoded text: ", "", "")
_DOCUMENT_CATEGORIES = ("document", "long_document", "security_document")
_SHORT_TEXT_CATEGORIES = ("instruction", "coding", "document", "short_query", "dialogue_turn")


class Family(msgspec.Struct, frozen=True):
    """Patterns with slots such as ``{verb}``, and the words that may fill each slot."""

    patterns: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]


def augmented(corpus: Sequence[Row]) -> list[Row]:
    """Return the rows that are trained on beside a corpus."""
    generator = random.Random(SEED)
    phrases = authored(generator)
    return [
        *phrases,
        *_encoded(generator, corpus, phrases),
        *_documents(generator, corpus, phrases),
    ]


def authored(generator: random.Random) -> list[Row]:
    """Return rows made from ``authored.json``: attacks, and hard negatives, harmless texts that look like them."""
    data = files("deploy.training").joinpath("authored.json").read_bytes()
    rows = []
    for label, families in msgspec.json.decode(data, type=dict[str, dict[str, Family]]).items():
        attack = label == "attack"
        for name, family in families.items():
            texts: dict[str, None] = {}
            for _ in range(_DRAWS):
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
    """Return the ways in which attackers hide a text: name -> a function that does it."""
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


def _encoded(generator: random.Random, corpus: Sequence[Row], phrases: Sequence[Row]) -> list[Row]:
    """Return short attacks and harmless texts, each encoded in every way, so that an encoding alone is no attack."""
    attacks: list[tuple[Row, tuple[int, ...]]] = [
        (row, (index,))
        for index, row in enumerate(corpus)
        if row.attack and is_direct(row.category) and "encoded" not in row.category and len(row.text) < 400
    ]
    attacks += [(row, ()) for row in phrases if row.attack and "obfuscated" not in row.category]
    harmless = [
        (row, (index,))
        for index, row in enumerate(corpus)
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


def _documents(generator: random.Random, corpus: Sequence[Row], phrases: Sequence[Row]) -> list[Row]:
    """Return pairs of documents: with harmless remarks, and with an injection. So length does not tell them apart."""
    whole = [index for index, row in enumerate(corpus) if not row.attack and row.category in _DOCUMENT_CATEGORIES]
    small: dict[str, list[int]] = {}
    for index, row in enumerate(corpus):
        if row.label == "benign" and row.category in _SHORT_TEXT_CATEGORIES and len(row.text) < 1_500:
            small.setdefault(row.source, []).append(index)
    injections = [(row, ()) for row in phrases if row.category in ("authored_indirect", "authored_inserted_code")]
    overrides = [
        (row, (index,))
        for index, row in enumerate(corpus)
        if row.category in ("prompt_injection", "system_prompt_extraction") and len(row.text) < 200
    ]
    remarks = [row for row in phrases if row.category in ("authored_documents", "authored_code_help")]
    rows = []
    for _ in range(_DOCUMENTS if whole and small else 0):
        if generator.random() < 0.45:
            indices = [generator.choice(whole)]
        else:
            of_source = small[generator.choice(sorted(small))]
            indices = generator.sample(of_source, min(len(of_source), generator.choice((3, 6, 12, 25, 50))))
        base = "\n\n".join(corpus[index].text for index in indices)[:_LONGEST_DOCUMENT]
        parents = tuple(indices)
        # Most get one remark about prompts and attacks, some get eight: such documents exist, and are harmless.
        clean = base
        for remark in generator.sample(remarks, generator.choice((1, 1, 2, 8))):
            clean = _inserted(generator, clean, remark.text)
        rows.append(Row(clean, "benign", "made_document", "made:document", parents))
        injection, own_parents = generator.choice(overrides if overrides and generator.random() < 0.3 else injections)
        rows.append(
            Row(
                _inserted(generator, base, injection.text),
                "attack",
                "made_indirect",
                "made:indirect",
                (*parents, *own_parents),
            )
        )
    return rows


def _inserted(generator: random.Random, base: str, remark: str) -> str:
    """Return a text with a remark at its beginning, its end, or anywhere between two sentences."""
    parts = _BREAK.split(base)
    cut = generator.choice((0, len(parts), generator.randrange(len(parts) + 1)))
    return " ".join(parts[:cut]) + "\n" + remark + "\n" + " ".join(parts[cut:])
