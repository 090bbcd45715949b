"""Templates of signatures (phrases of attacks): many spellings of one demand, written once.

``{words}`` in a template stands for each of the alternatives listed under that name; an empty alternative stands for no
text. A template's signatures are all combinations, in the order written, without repetitions.
"""

import re
from itertools import product

import msgspec

from schemas.event import Unit
from schemas.vocabulary.patterns import Action, Name, PatternSet, Signature

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class TemplateSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern set whose signatures are written as templates.

    ``action``: a match blocks an input or only flags it. ``confidence`` is recorded with a match. ``whole_words``: a
    match must not continue into a longer word.
    """

    name: Name
    action: Action
    confidence: Unit
    templates: tuple[str, ...]
    whole_words: bool = True


class TemplateFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Alternatives by name, and the template sets that use them."""

    words: dict[str, tuple[str, ...]]
    sets: tuple[TemplateSet, ...]


def expand(file: TemplateFile) -> tuple[PatternSet, ...]:
    """Return the pattern sets that a file of templates stands for; raises KeyError for a name it does not list."""
    found = []
    for each in file.sets:
        texts = dict.fromkeys(text for template in each.templates for text in expand_template(template, file.words))
        signatures = tuple(text if each.whole_words else Signature(text=text, whole_words=False) for text in texts)
        found.append(PatternSet(name=each.name, action=each.action, confidence=each.confidence, signatures=signatures))
    return tuple(found)


def expand_template(template: str, words: dict[str, tuple[str, ...]]) -> list[str]:
    """Return every text that one template stands for, with single spaces."""
    parts = _PLACEHOLDER.split(template)  # text and names take turns
    choices = [words[part] if index % 2 else (part,) for index, part in enumerate(parts)]
    return [" ".join("".join(chosen).split()) for chosen in product(*choices)]
