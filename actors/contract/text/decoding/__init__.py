"""The disguises that a text may be hidden in, and the one pure function that undoes them for every sense.

Reflex itself searches the whole text in a few fast rewritings. Rarer disguises are undone here, once for all senses:
``decoded_texts`` keeps its latest results. The senses then read and compare the results like the text itself.
``numerals``, ``escapes``, ``payloads``, ``invisible_text``, ``ciphers``, ``split_words`` and ``documents`` undo one
form each. ``nested_decoding`` applies them again to their results, to a limited depth.
"""

from actors.contract.text.decoding.nested_decoding import Decoded, decode_nested, decoded_texts, texts_for_judges

__all__ = ["Decoded", "decode_nested", "decoded_texts", "texts_for_judges"]
