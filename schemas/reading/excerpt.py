"""The part of a long text that is looked at: its beginning, its end, and what stands around telling words.

Whatever is left out goes unread, so the parts are chosen where instructions to a model are put: at either end, and
where words of instruction occur. Texts up to ``WHOLE`` characters are read whole.
"""

import re

WHOLE = 32_768
"""Characters read of any text: longer ones are cut to about this many."""

SCANNED = 2_097_152
"""Characters searched for telling words; nothing beyond is looked at, save the end."""

_HEAD, _TAIL = 12_288, 8_192
_AROUND = 256
_MOST_PLACES = 24
_TELLING = re.compile(
    r"(?i)ignor|disregard|forget|override|bypass|vergiss|olvid|oubli|dimentic|\u5ffd\u7565|\u7121\u8996"
    r"|system prompt|instructions|jailbreak|unrestricted|you are now|from now on|assistant:|system:"
    r"|an ai\b|language model|do anything|api key|password"
)


def excerpt(text: str) -> str:
    """Return a text of at most ``WHOLE`` characters, or the telling parts of a longer one, joined by line ends."""
    if len(text) <= WHOLE:
        return text
    head, tail = text[:_HEAD], text[-_TAIL:]
    parts = [head]
    end, places = _HEAD, 0
    for match in _TELLING.finditer(text, _HEAD, min(len(text) - _TAIL, SCANNED)):
        if places == _MOST_PLACES:
            break
        if match.end() <= end:
            continue
        start = max(end, match.start() - _AROUND)
        end = min(match.end() + _AROUND, len(text) - _TAIL)
        parts.append(text[start:end])
        places += 1
    return "\n".join((*parts, tail))
