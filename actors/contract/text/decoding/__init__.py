"""Undoes the disguises that a text may be hidden in, by one pure function for all guards (actors that can refuse it).

Reflex itself searches the whole text, and a few rewritings of it that are fast to make. The common encodings of a
text's beginning, such as base64, are undone by ``decoded_views``. Rarer disguises are undone here, once for all guards:
``decoded_texts`` caches its latest results. The guards then read the results like the text itself.
``numerals``, ``escapes``, ``payloads``, ``invisible_text``, ``ciphers``, ``split_words`` and ``documents`` undo one
form of disguise each. ``nested_decoding`` applies them again to their results, to a limited depth.
"""

from actors.contract.text.decoding.nested_decoding import Decoded, decode_nested, decoded_texts, texts_for_judges

__all__ = ["Decoded", "decode_nested", "decoded_texts", "texts_for_judges"]
