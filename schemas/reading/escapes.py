"""What quoted strings say, in place of how they are written: JSON and code escape line ends and quotation marks.

An order in a document of JSON would else be read as one sentence with what stands before it.
"""

import re

import msgspec

# Unclosed strings are matched to the text's end: each quotation mark is looked at once.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def unescaped(text: str) -> str:
    """Return a text whose strings in double quotes hold what they say; those that are no JSON stay as they are."""
    return _STRING.sub(_said, text) if "\\" in text and '"' in text else text


def _said(string: re.Match[str]) -> str:
    if "\\" not in string[0]:
        return string[0]
    try:
        return f'"{msgspec.json.decode(string[0].encode(), type=str)}"'
    except (msgspec.DecodeError, UnicodeEncodeError):
        return string[0]
