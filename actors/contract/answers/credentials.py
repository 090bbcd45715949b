"""Finds keys, tokens and passwords in an answer. Pure.

Two kinds are found: text in the form that an issuer gives its keys (``FORMS``), and values that a system layer (an
operator's instructions) of the prompt calls a password, key, code or the like (``PromptSecrets``). A value that the
user has written is no secret from the user. Placeholders, such as the keys of documentation, do not count.

The list of forms is our own. The library for this, detect-secrets, looks for secrets in source code. Most of its finds
are by entropy or by the names of variables, which in prose are false alarms. It keeps its settings in the process and
depends on an HTTP client. Its finds change with its releases, while a recorded decision must be reproduced exactly. The
forms are those that issuers document and that have a prefix of their own.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from actors.contract.answers.prompt import Prompt
from actors.contract.text.decoding.escapes import with_blanks
from schemas.vocabulary.reflex import SecretKind

FORMS: dict[SecretKind, re.Pattern[str]] = {
    "private_key": re.compile(
        r"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr])+[A-Za-z0-9+/:=-]{16}"
    ),
    "aws_key": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "github_token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{59})"),
    "gitlab_token": re.compile(r"\bglpat-[A-Za-z0-9_-]{20}"),
    "model_key": re.compile(r"\b(?:sk-(?:proj-|svcacct-|ant-[a-z0-9]+-|or-v1-)?[A-Za-z0-9_-]{24,}|hf_[A-Za-z0-9]{34})"),
    "slack_token": re.compile(r"\bxox[abeoprs]-[0-9]{8,}-[A-Za-z0-9-]{12,}"),
    "google_key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "payment_key": re.compile(r"\b[rs]k_live_[A-Za-z0-9]{24,}"),
    "registry_token": re.compile(r"\b(?:pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50}|npm_[A-Za-z0-9]{36})"),
    "web_token": re.compile(r"\beyJ[A-Za-z0-9_-]{14,}\.eyJ[A-Za-z0-9_-]{14,}"),
}
"""Kind -> the form of its keys, as the issuer documents it; the rest of the same word belongs to the key."""

_PREFIXES = re.compile(r"-----BEGIN|A[KS]IA|gh[pousr]_|github_pat_|glpat-|sk-|hf_|xox|AIza|k_live_|pypi-|npm_|eyJ")
"""A text without any of these substrings contains none of the forms."""

LONGEST_VALUE = 128
"""Most characters of a password in the prompt that is looked for."""

_REST = re.compile(r"[A-Za-z0-9_.+/=-]*")
"""What may follow a form in the same word."""

_KEY_BLOCK = re.compile(r"(?:[\sA-Za-z0-9+/:=,.]|\\[nr]|-(?!----))*(?:-----END [A-Z ]{0,32}KEY(?: BLOCK)?-----)?")
"""What may follow the first line of a private key: the rest of its PEM block, up to the last line."""

_PLACEHOLDER = re.compile(r"(?i)example|sample|your|placeholder|dummy|x{5}|\.{3}|1234567|abcdefg|(.)\1{4}")
"""What the keys of documentation have: such a word, or one character five times in a row."""

_IN_PASSWORDS = re.compile(r"\d|\w[^\w\s/]\w")
"""A digit, or a symbol inside a word: a password has one of these, and a plain word has not."""

_SIGNS = re.compile(r"[\W_]+")

_FEWEST_DIFFERENT = 9
"""A key with fewer different characters than this is a placeholder."""

_NAMED_VALUE = re.compile(
    r"(?i)\b(?:pass(?:word|phrase|code|wd)?|secret|token|(?:api|access|secret|private|license|licence)[ _-]?key|pin"
    r"|(?:access|vault|door|safe|admin|secret|security|entry|override|pass|activation)[ _-]?code|credentials?)\b"
    r"(?:\s+(?:for|of|to)(?:\s+[\w.@-]+){1,4}?)?\s*(?:\bis\b|\bare\b|:|=|->)\s*"
    r"(?:[\"'`“‘]([^\"'`”’\n]{4,128})[\"'`”’]|([^\s\"'`“‘,;]{4,128}))"
)
"""A word for a secret, perhaps with what it is for, then ``is``, ``:`` or the like, then the value, quoted or bare."""


_SEARCHED = 2_048
"""Bytes of a text that are searched for values at a time: values may overlap, and all matches are listed."""


class SecretSpan(NamedTuple):
    """A secret and its position in a text."""

    kind: SecretKind
    start: int
    end: int


class PromptSecrets:
    """The secrets of a prompt. ``values`` are the passwords and the like in its system layers.

    What the user has written is no secret from the user.
    """

    def __init__(self, prompt: Prompt) -> None:
        of_user = [prompt.text, *(layer.content for layer in prompt.layers if layer.role == "user")]
        self._user_text = "\n".join(of_user)
        named = (value for layer in prompt.layers if layer.role == "system" for value in _named_values(layer.content))
        different = tuple(dict.fromkeys(named))
        of_user_too = _ValueSearch(different).occurring_in(self._user_text)
        self.values = tuple(value for index, value in enumerate(different) if index not in of_user_too)
        self._folded_values = tuple(map(str.casefold, self.values))
        self._search = _ValueSearch(self._folded_values)

    def found_in(self, text: str) -> tuple[SecretSpan, ...]:
        """Return the secrets in a text, or in a part of one, by position."""
        found = [*self._keys_not_from_user(text), *self._prompt_values_in(text)]
        return tuple(sorted(found, key=lambda each: (each.start, -each.end)))

    def only_in(self, view: str, text: str) -> tuple[SecretKind, ...]:
        """Return the kinds of the secrets that are in a decoded view of a text, and not in the text as it stands."""
        if not (found := self.found_in(view)):
            return ()
        plain = {_alphanumeric(text[each.start : each.end]) for each in self.found_in(text)}
        return tuple(each.kind for each in found if _alphanumeric(view[each.start : each.end]) not in plain)

    def _keys_not_from_user(self, text: str) -> Iterator[SecretSpan]:
        for found, key in _keys_in(text):
            if key not in self._user_text and not _is_placeholder(key):
                yield found

    def _prompt_values_in(self, text: str) -> Iterator[SecretSpan]:
        if not self.values:
            return
        folded = text.casefold()
        if not (occurring := self._search.occurring_in(folded)):
            return
        # Some letters become two, such as the German sharp s: where there are any, each folded letter's own position.
        positions = (
            range(len(text) + 1)
            if len(folded) == len(text)
            else [at for at, letter in enumerate(text) for _ in letter.casefold()]
        )
        for value in map(self._folded_values.__getitem__, sorted(occurring)):
            start = folded.find(value)
            while start >= 0:
                end = start + len(value)
                yield SecretSpan("prompt_secret", positions[start], positions[end - 1] + 1)
                start = folded.find(value, end)


def keys_in(text: str) -> Iterator[SecretSpan]:
    """Yield whatever has the form of a key, whole: what follows the form in the same word or block belongs to it."""
    return (found for found, _ in _keys_in(text))


def masked(text: str, spans: tuple[tuple[str, int, int], ...]) -> str:
    """Return a text with the secrets at some positions replaced by their kinds."""
    parts, at = [], 0
    for kind, start, end in sorted(spans, key=lambda span: (span[1], -span[2])):
        if end <= at:
            continue
        parts += [text[at : max(at, start)], f"[{kind.replace('_', ' ')} withheld]"]
        at = end
    return "".join([*parts, text[at:]])


def _keys_in(text: str) -> Iterator[tuple[SecretSpan, str]]:
    """Yield whatever has the form of a key, and the part of it that the form itself matches."""
    if not _PREFIXES.search(text):
        return
    # In JSON, such as a tool's arguments, a line end before a key is written ``\n``: its letter would join the key.
    blanked = with_blanks(text)
    for kind, form in FORMS.items():
        rest, end = (_KEY_BLOCK if kind == "private_key" else _REST), 0
        for match in form.finditer(blanked):
            if match.end() > end and (whole := rest.match(blanked, match.end())):  # else inside the key before it
                end = whole.end()
            key = text[match.start() : match.end()]
            # A full stop at the end belongs to the sentence, not to the key.
            yield SecretSpan(kind, match.start(), max(match.end(), end - (text[end - 1 : end] == "."))), key


def _named_values(content: str) -> Iterator[str]:
    """Yield what a text calls a password or the like; plain words do not count, as in "the password is required"."""
    for match in _NAMED_VALUE.finditer(content):
        quoted, bare = match.groups()
        value = quoted.strip() if quoted else bare.strip(".:!?)]}>")
        if len(value) >= 4 and ((quoted and len(value) >= 6) or _IN_PASSWORDS.search(value)):
            yield value


class _ValueSearch:
    """Finds any number of values in one pass over a text."""

    def __init__(self, values: tuple[str, ...]) -> None:
        encoded = [value.encode("utf-8", "surrogatepass") for value in values]
        self._longest = max(map(len, encoded), default=0)
        self._search = BytesAhoCorasick(encoded)

    def occurring_in(self, text: str) -> set[int]:
        """Return the indexes of the values that occur in a text."""
        encoded = text.encode("utf-8", "surrogatepass")
        found: set[int] = set()
        for begin in range(0, len(encoded), _SEARCHED):
            part = encoded[begin : begin + _SEARCHED + self._longest]
            found |= {index for index, _, _ in self._search.find_matches_as_indexes(part, overlapping=True)}
        return found


def _alphanumeric(text: str) -> str:
    """Return the letters and digits of a text: white space and escapes in a key depend on the view."""
    return _SIGNS.sub("", with_blanks(text)).casefold()


def _is_placeholder(key: str) -> bool:
    if key.startswith("-----BEGIN"):
        return bool(_PLACEHOLDER.search(key.rpartition("-----")[2]))
    return len(set(key)) < _FEWEST_DIFFERENT or not re.search(r"\d", key) or bool(_PLACEHOLDER.search(key))
