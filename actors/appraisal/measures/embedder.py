"""Embeddings of texts: by wordllama's token vectors if that package is installed, else by hashed n-grams.

wordllama's vectors carry meaning; hashed n-grams only see equal words and beginnings of words. Every appraisal records
which of the two was used. The package's own loader uses the network, so its weights and tokenizer are read from its
folder.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from actors.appraisal.measures.vectors import DIMENSIONS, Sums, quantised_embedding
from actors.appraisal.settings import Embedder
from actors.contract.text.folding import fold

MOST_READ = 4_096
"""Characters of a text that are embedded; of a longer text, three quarters from its beginning and one from its end."""

_WEIGHT_UNIT = 1024  # vectors are kept as integers, in units of 1 / 1024
_ROWS_AT_ONCE = 8_192  # token vectors that are converted to integers at once
_WORD = re.compile(r"\w+")
_SALT = 0x5EED  # of the hash, so that it differs from other uses of CRC-32
_BLANK = "\u2581"  # SentencePiece's sign for a space
_PLAIN_NORMALIZER = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": _BLANK},
        {"type": "Replace", "pattern": {"String": " "}, "content": _BLANK},
    ],
}
# In a token: characters of two words, or of a word and a line end.
_SPANS_WORDS = re.compile(f"[^{_BLANK}]{_BLANK}|\n.|.\n", re.S)
_PIECE = re.compile(f"{_BLANK}*[^{_BLANK}\n]+|{_BLANK}+|\n+")
_LONGEST_CACHED = 256
"""Longest word, in characters, whose tokens are cached; a text with longer words is tokenized as a whole."""


class Model(msgspec.Struct, frozen=True, eq=False):
    """A way to embed texts: its name, which changes when its vectors do, and whether its vectors carry meaning.

    ``embed`` returns a text's vector as bytes, one signed byte for each of ``vectors.DIMENSIONS``.
    """

    name: str
    semantic: bool
    embed: Callable[[str], bytes]


def model_of(embedder: Embedder) -> Model:
    """Return the model that a setting names."""
    return (_wordllama() if embedder == "auto" else None) or _HASHED


def embedded_part(text: str) -> str:
    """Return the part of a text that is embedded."""
    if len(text) <= MOST_READ:
        return text
    head = MOST_READ * 3 // 4
    return text[:head] + "\n" + text[head - MOST_READ :]


def hashed_embedding(text: str) -> bytes:
    """Return the embedding of a text by hashed words and beginnings of words: similar for texts that share words."""
    sums = np.zeros(DIMENSIONS, dtype=np.int64)
    for word in _WORD.findall(fold(embedded_part(text))):
        # Long words carry more meaning than the short words of grammar.
        weight = min(len(word), 8)
        for part in (word, word[:4]):
            hashed = zlib.crc32(part.encode("utf-8", "surrogatepass"), _SALT)
            sums[hashed % DIMENSIONS] += weight if hashed & 0x80000000 else -weight
    return quantised_embedding(sums)


_HASHED = Model("hashed-1", False, hashed_embedding)


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
    # Imported here, since most processes embed nothing.
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    data = weights_file.read_bytes()
    (vectors,) = load(data).values()
    # The vectors were trained so that their first dimensions can be used alone.
    whole = np.empty((len(vectors), DIMENSIONS), dtype=np.int16)
    for start in range(0, len(vectors), _ROWS_AT_ONCE):  # all at once would take four times the memory
        rows = vectors[start : start + _ROWS_AT_ONCE, :DIMENSIONS].astype(np.float64)
        whole[start : start + _ROWS_AT_ONCE] = np.rint(rows * _WEIGHT_UNIT)
    ids_of = _tokens_of(Tokenizer.from_file(str(tokenizer_file)), json.loads(tokenizer_file.read_bytes()))

    def embed(text: str) -> bytes:
        ids = ids_of(embedded_part(text).encode("utf-8", "replace").decode("utf-8"))
        sums: Sums = whole[ids].sum(axis=0, dtype=np.int64)
        return quantised_embedding(sums)

    return Model(f"wordllama-{hashlib.sha256(data).hexdigest()[:8]}", True, embed)


def _tokens_of(tokenizer: Any, config: Any) -> Callable[[str], list[int]]:
    """Return a function from a text to the numbers of its tokens.

    The tokenizer works on the whole text, and takes a millisecond for a page. If none of its tokens spans a blank or a
    line end, every word has the same tokens wherever it occurs. Then words are looked up one by one in a cache.
    """
    special_tokens = [each["content"] for each in config["added_tokens"]]

    def whole(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    if config["normalizer"] != _PLAIN_NORMALIZER or config["pre_tokenizer"] or config["model"]["type"] != "BPE":
        return whole
    if any(_SPANS_WORDS.search(token) for token in config["model"]["vocab"]):
        return whole
    model = tokenizer.model

    @lru_cache(maxsize=32_768)
    def tokens_of_word(word: str) -> tuple[int, ...]:
        return tuple(token.id for token in model.tokenize(word))

    def by_word(text: str) -> list[int]:
        if not text or any(token in text for token in special_tokens):
            return whole(text)
        words = _PIECE.findall(_BLANK + text.replace(" ", _BLANK))
        if max(map(len, words)) > _LONGEST_CACHED:
            return whole(text)
        return list(chain.from_iterable(map(tokens_of_word, words)))

    return by_word
