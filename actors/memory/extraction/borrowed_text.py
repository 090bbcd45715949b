"""Detects texts that are not the person's own words: pasted texts, texts to work on, and role play. Pure, English only.

Pasted text is detected by its layout (code, mark-up, lists, letters, dialogue, verse), the others by words. One symptom
is enough: a missed fact may be stated again, but a wrong fact would be recalled for ever.
"""

import re

# Each expression below is followed by what it matches, or by an example.
_PASTED = re.compile(
    r"```|~~~|</?[a-z][\w-]*[^<>]*>|[{}|\\]|\[[^\]\n]*\]|\w\(|://\S+\s*\n|"
    r"^[ \t]*(?:#{1,6}\s|>|[-*\u2022]\s|\d{1,2}[.)]\s)|^[ \t]*(?:subject|from|to|cc|date|re)\s*:|^[ \t]*dear\b|"
    r"^[ \t]*(?:sincerely|(?:kind |best )?regards|best wishes|yours(?: truly| sincerely)?|cheers)[ \t]*,?[ \t]*$|"
    r"\b[A-D][.)]\s.*\b[B-E][.)]\s",
    re.I | re.M,
)
"""Code, mark-up, brackets, lists, quoted mail, the head or the end of a letter, a choice of answers."""

_ATTRIBUTED = re.compile(
    r"[.!?\"'\u201d\u2026]\s*(?:-{1,3}|[\u2013\u2014~])\s*[A-Z][\w.'-]*(?:,?\s+(?:[A-Z][\w.'-]*|of|the|from|in|by|to|"
    r"\d+|[ivx]+))*\W*$"
)
"""The author of quoted words may follow them: "I live in Denmark. -- Hamlet"."""

_RULE = re.compile(r"^[ \t]*[-=_*~]{3,}", re.M)
"""A line that separates parts of a text."""

_LEAST_VERSE_LINES = 4
"""Fewest lines of a text that is verse, if most of them do not end a sentence."""

_FRAGMENT = re.compile(
    r"\W*(?!(?:how|what|who|when|where|why|hello|hi|hey|ok|okay|really)\b)(?:[\w']+\s+){0,2}[\w']+\?", re.I
)
"""A question of one to three words at the beginning, as in a dialogue: "Ready? ..."."""

_SPEAKER = re.compile(r"(?:^|\s)[A-Z][\w.]{0,20}(?: \d{1,2}| [A-Z]\w{0,20})?:\s")
"""The name of a speaker in a dialogue: "Anna: "."""

_LANGUAGE_WORK = re.compile(
    r"\b(?:translat(?:e|es|ed|ing|ions?)|transliterate|proof-?read\w*|paraphras\w+|rephras\w+|reword\w*|rewrit\w+|"
    r"rewrote|summar(?:y|ies|i[sz]\w+)|grammar|grammatical(?:ly)?|punctuation|spell-?check|spelling|autocomplete|"
    r"sentences?|phrases?|paragraphs?|passages?|quot(?:e|es|ed|ation)|dialog(?:ue)?s?|transcripts?|lyrics|verbs?|"
    r"tenses?|adjectives?|the following|the above|(?:this|that|my|the) (?:text|statement|line|essay|poem|paper|letter|"
    r"draft|article|speech)|(?:in|into|to) (?:spanish|french|german|italian|portuguese|dutch|latin|japanese|chinese|"
    r"russian|arabic|hindi|korean|polish|czech|turkish|morse|pig latin|base64|rot13|binary|json|yaml|uppercase|"
    r"upper case|lower ?case)|(?:formal|casual|informal|polite)ly|more (?:formal|casual|polite)|backwards?|after me|"
    r"word for word|verbatim)\b",
    re.I,
)
"""Words of a task on a text, such as translation or correction."""

_PLAY = re.compile(
    r"\b(?:pretend\w*|imagin(?:e|ing|ary)|suppos(?:e|ing|edly)|assum(?:e|ing)|role-?play\w*|role play\w*|"
    r"act(?:ing)? (?:as|like)|want you to be|in the role|play(?:ing)? (?:the|a|an) (?:role|part|character|game of)|"
    r"let's play|playing|personas?|characters?|fiction\w*|hypothe\w+|for (?:example|instance)|e\.g|"
    r"(?<![@.])examples?(?!\.\w)|once upon a time|scenarios?|simulat\w+|as if|let's say|what if|say i|alter ego|"
    r"stage name|pen name|from now on,? you|jailbreak|(?:in|for|from|of) (?:the|this|that|my|a|an|our|his|her|their|"
    r"some|your) (?:\w+ )?(?:play|story|tale|novel|book|film|movie|game|dream|scene|song|poem|sketch|joke|script|show|"
    r"series|fantasy|rpg|campaign|role|world of|universe|musical|opera|drama|comedy|tragedy|fairy ?tale|legend|demo|"
    r"test case|unit test|fixture|exercise|quiz|riddle|puzzle)|(?:your|its) (?:name|task|job|role|goal) (?:is|"
    r"will be)|you(?: are|'re|r are) (?:now )?(?:a|an|my|called|named|the)|two truths|knock,? knock|just kidding|"
    r"only joking|not really|lorem ipsum)\b",
    re.I,
)
"""Words of role play, fiction, games and examples."""

_PERSONA = re.compile(
    r"\b[Yy]ou(?: are|'re) (?:now )?[A-Z]|\b(?:previous|prior|earlier|above|all) (?:instructions?|prompts?|rules)\b|"
    r"\bPlay\b"
)
"""A role that is given to the agent: "You are now Max"."""


def is_borrowed(text: str) -> bool:
    """Whether a text is pasted, a text to work on, or part of a play."""
    return (
        _PASTED.search(text) is not None
        or _RULE.search(text) is not None
        or _ATTRIBUTED.search(text) is not None
        or _FRAGMENT.match(text) is not None
        or _is_verse(text)
        or len(_SPEAKER.findall(text)) > 1
        or _LANGUAGE_WORK.search(text) is not None
        or _PLAY.search(text) is not None
        or _PERSONA.search(text) is not None
    )


def _is_verse(text: str) -> bool:
    lines = [line for line in text.splitlines() if line]
    return len(lines) >= _LEAST_VERSE_LINES and sum(line[-1] in ".!?" for line in lines) < len(lines) / 2
