"""What a text says once its disguises are undone, for every sense: one pure function, and the forms that it undoes.

Reflex searches all of a text in its own fast readings; what is rarer, and what hides in another disguise, is undone
here, once for all who ask: ``decoded_texts`` keeps the latest answers. The senses read and compare what it returns as
they read the text. ``numerals``, ``escapes``, ``payloads``, ``invisible_text``, ``ciphers``, ``split_words`` and
``documents`` hold the forms, ``nested_decoding`` applies them to what they give, to a bounded depth.
"""

from actors.contract.text.decoding.nested_decoding import Decoded, decode_nested, decoded_texts, texts_for_judges

__all__ = ["Decoded", "decode_nested", "decoded_texts", "texts_for_judges"]
