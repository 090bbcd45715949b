"""Texts as embeddings: by wordllama's token vectors where that package is installed, else by hashed n-grams.

wordllama's vectors carry meaning; hashed n-grams only see the same words and beginnings of words. Which of the two
spoke is part of every appraisal. The package's own loader goes to the network, so its weights and tokenizer are read
from its folder.
"""

import hashlib
import re
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from actors.appraisal.settings import Embedder
from actors.appraisal.vectors import DIMENSIONS, Sums, quantised
from schemas.reading.folding import fold

READ = 4_096
"""Characters of a text that its embedding rests on: of a longer one the first three quarters and the end."""

_WEIGHT_UNIT = 1024
_ROWS_AT_ONCE = 8_192
_WORD = re.compile(r"\w+")
_SALT = 0x5EED


class Model(msgspec.Struct, frozen=True, eq=False):
    """A way to embed: its name, which changes whenever its vectors do, and whether its vectors carry meaning."""

    name: str
    semantic: bool
    embed: Callable[[str], bytes]


def model_of(embedder: Embedder) -> Model:
    """Return the model of a setting."""
    return (_wordllama() if embedder == "auto" else None) or _HASHED


def shown(text: str) -> str:
    """Return the part of a text that is embedded."""
    if len(text) <= READ:
        return text
    head = READ * 3 // 4
    return text[:head] + "\n" + text[head - READ :]


def hashed(text: str) -> bytes:
    """Return the embedding of a text by its words and their beginnings, hashed: alike where the words are."""
    sums = np.zeros(DIMENSIONS, dtype=np.int64)
    for word in _WORD.findall(fold(shown(text))):
        # Long words say more than the small words of grammar.
        weight = min(len(word), 8)
        for part in (word, word[:4]):
            spot = zlib.crc32(part.encode("utf-8", "surrogatepass"), _SALT)
            sums[spot % DIMENSIONS] += weight if spot & 0x80000000 else -weight
    return quantised(sums)


_HASHED = Model("hashed-1", False, hashed)


@cache
def _wordllama() -> Model | None:
    """Return the model of the installed wordllama package, or None when it or its tokenizer is not installed."""
    found, tokenizers = find_spec("wordllama"), find_spec("tokenizers")
    if found is None or found.origin is None or tokenizers is None or find_spec("safetensors") is None:
        return None
    folder = Path(found.origin).parent
    weights_file = folder / "weights" / "l2_supercat_256.safetensors"
    tokenizer_file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    if not weights_file.is_file() or not tokenizer_file.is_file():
        return None
    return _load(weights_file, tokenizer_file)


def _load(weights_file: Path, tokenizer_file: Path) -> Model:
    # Imported here: most processes embed nothing.
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    data = weights_file.read_bytes()
    (vectors,) = load(data).values()
    # The vectors were trained so that their first dimensions serve alone.
    whole = np.empty((len(vectors), DIMENSIONS), dtype=np.int16)
    for start in range(0, len(vectors), _ROWS_AT_ONCE):  # all at once, they would take four times the room
        rows = vectors[start : start + _ROWS_AT_ONCE, :DIMENSIONS].astype(np.float64)
        whole[start : start + _ROWS_AT_ONCE] = np.rint(rows * _WEIGHT_UNIT)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))

    def embed(text: str) -> bytes:
        clean = shown(text).encode("utf-8", "replace").decode("utf-8")
        ids = tokenizer.encode(clean, add_special_tokens=False).ids
        sums: Sums = whole[ids].sum(axis=0, dtype=np.int64)
        return quantised(sums)

    return Model(f"wordllama-{hashlib.sha256(data).hexdigest()[:8]}", True, embed)
