"""Finds the clauses of a text in which a person speaks for themselves. Pure, English only.

Extraction begins here, because no pattern can distinguish "I live in Paris" from the same words after "Fix the
grammar:". A text is checked as a whole first: pasted texts, texts to work on and role play give nothing. In other
texts, several parts are not read: text after a task that produces text ("write a mail"), after a colon or a reporting
verb; quotes and brackets; questions and suppositions. In doubt a part is left out: no fact is better than a wrong fact.
"""

import re
from typing import NamedTuple

from actors.contract.text.terms import MOST_READ
from actors.memory.extraction.borrowed_text import is_borrowed
from actors.memory.extraction.phrases import EDGES

MOST_CHARACTERS = 800
"""A longer text is not read: it is rarely a person talking about themselves, but pasted, or a task."""

QUOTE_MARK = "\x00"
"""Replaces quoted words of somebody else; no statement contains this character."""

_PLAIN_QUOTES = str.maketrans(
    {
        "\u2019": "'",
        "\u2018": "'",
        "\u02bc": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00ab": '"',
        "\u00bb": '"',
    }
)

# Each expression below is followed by what it matches, or by an example.
_OF_ONESELF = re.compile(
    r"\b(?:i|i'm|my|me|we|our|name's|no|not|nope|nah|actually|sorry|wait|wrong|spelled|spelt|remember|note|keep|forget)\b",
    re.I,
)
"""A word that every text contains which states or takes back something; texts without one are skipped."""

_HANDS_OVER = re.compile(
    r"here(?:'s| is| are| comes)\b"
    r"|.*\b(?:look at|looks?|found|saw|read|sent(?: me| us)?|got|received|posted|check(?: out)?|goes like|"
    r"see) (?:this|these|that)\b"
    r"|.*\b(?:as follows|goes like this)\b"
    r"|(?:i |we )?(?:make|prepare|need|want|give|help|do|get|produce|would like|'d like)\b.{0,40}\b(?:resume|"
    r"r\u00e9sum\u00e9|cv|cover letter|speech|bio|biography|essay|poem|haiku|limerick|sonnet|story|song|letter|script|"
    r"tweet|caption|slogan|introduction|toast|vows|card|blog|advert|ad)\b"
    r"|(?:be|become)\s"
    r"|.*\b(?:had|have|having) (?:a|an|this|the|that|another|such a) (?:\w+ )?(?:dream|nightmare|vision|daydream)\b"
    r"|.*\bdream(?:t|ed|ing)\b(?! (?:of|about)\b)",
    re.I,
)
"""A clause after which somebody else's text follows: "Here is ...", "Look at this", "I had a dream"."""

_OPEN_REPORT = re.compile(
    r"\b(?:sa(?:id|ys)|wr(?:ote|ites)|repl(?:ied|ies)|answer(?:ed|s)|claim(?:ed|s)|told|tells|heard|read|shout(?:ed|s)|"
    r"whisper(?:ed|s)|text(?:ed|s)|sang|sings|thought)"
    r"(?:\s+(?:this|that|so|me|us|him|her|them|it|to me|to us|back|yesterday|today|again|once|last \w+))*$",
    re.I,
)
"""A reporting clause at the end, before the reported words: "She said." """

_TASK = re.compile(
    r"(?:(?:please|kindly|now|then|first|just|can you|could you|would you|will you|can i|could i|i want you to|"
    r"i'd like you to|i would like you to|i need you to|i want to|i need to|i'd like to|help me(?: to)?|let's|"
    r"let us|go ahead and)\s+)*"
    r"(?:fix|correct|edit|improve|polish|shorten|simplify|expand|continue|complete|finish|repeat|echo|say|read|recite|"
    r"sing|print|output|type|copy|cite|write|compose|draft|generate|create|invent|make up|implement|program|develop|"
    r"build|solve|calculate|sort|reverse|respond|reply|answer|react|"
    r"classify|label|analy[sz]e|parse|extract|identify|detect|determine|convert|format|annotate|tokeni[sz]e|spell|"
    r"pronounce|interpret|define|evaluate|rate|grade|judge|count|given|consider|use|insert|fill in|tell (?:a|me a) "
    r"(?:story|tale)|tell (?:him|her|them|\w+ (?:that|i))|ask (?:him|her|them)|email|mail|text|message|send|post|"
    r"tweet|publish|how (?:do|would|can|should) (?:you|i|we|one) (?:say|write|put|express|spell|pronounce)|(?:what|"
    r"which) (?:does|is|are) (?:wrong|the meaning|the mistake|the error)|what does|is (?:it|this) (?:right|"
    r"correct) to say)\b"
    r"(?P<object>\s+(?:this|that|these|it|so|them|above|my words)\b)?",
    re.I,
)
"""A task that has or produces a text: "Fix this", "Write a mail"; ``object`` says that its text came before it."""

_REPORT = re.compile(
    r"\b(?:sa(?:y|ys|id|ying)|t(?:ell|ells|old|elling)|wr(?:ite|ites|ote|iting|itten)|repl(?:y|ies|ied)|answer(?:s|"
    r"ed)|shout(?:s|ed)|whisper(?:s|ed)|claim(?:s|ed)|ask(?:s|ed)|s(?:ing|ings|ang|inging)|text(?:s|ed)|reads|"
    r"th(?:inks|ought)|believ(?:es|ed)|lied|dream(?:s|t|ed|ing)|heard|typed|means|assumes?|sounds like|goes like|"
    r"hint(?:s|ed)|insist(?:s|ed)|according to|swears?|swore|joke[sd]?|joking)\b",
    re.I,
)
"""A verb that reports what somebody says or thinks."""

_FORGET = re.compile(r"(?:please\s+)?(?:forget|disregard|ignore|delete|erase|do not remember|don't remember)\b", re.I)
_OWN_REPORT = re.compile(r"(?:as )?(?:i|i've|i have) (?:already |just )?(?:said|told|mentioned|wrote)\b", re.I)
_AS_I_SAID = re.compile(
    r",?\s+(?:as|like) (?:i|i've|i have) (?:already |just )?(?:said|told you|mentioned)(?: before| earlier)?$", re.I
)
"""The end of "I live in Rome, as I said", which is left out."""

_SHORT_REPORT = 4
"""Most words of a report of the clause before it: "I live in Rome, said Tom"."""

_ABBREVIATED = re.compile(r"\b(St|Mr|Mrs|Ms|Dr|Prof)\.(?=\s)")
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*(?:[.!?]+|\n|$)")
"""A sentence; a full stop within a word ("example.com") does not end it."""

_QUOTED = re.compile(r"\"[^\"]*(?:\"|$)|`[^`]*(?:`|$)|(?<![\w'])'(?!s\b)[^'\n]+(?:'\w[^'\n]*)*'(?!\w)|\([^)]*(?:\)|$)")
"""Words in quotes, in back quotes or in brackets."""

_FIRST_PERSON = re.compile(r"\b(?:i|my|me|i'm)\b", re.I)
# Words with which a clause can begin.
_SUBJECT = (
    r"(?:i|i'm|i've|i'd|i'll|my|me|we|we're|he|she|they|you|it|it's|that|that's|this|there|call|people|everyone|"
    r"everybody|friends|please|remember|note|keep|don't|forget|let|tell|ask|say|write|no|not|is|are|am|do|does|did|"
    r"can|could|would|will|should|have|what|what's|who|who's|where|where's|when|why|how|which|if|unless|right|correct|"
    r"said|says|wrote|also|now|actually|currently|originally|nice|thanks|thank|but|and|so|the|our|your|isn't|aren't|"
    r"don't|doesn't|didn't|[a-z]+ (?:said|says|wrote|asked|told))"
)
_CLAUSE = re.compile(
    rf"(?:\s*[,;]\s*|\s+[-\u2013\u2014]+\s+|\s*\u2014\s*)(?:(?:and|but|so|because|since|though|"
    rf"however)\s+)?(?={_SUBJECT}\b)"
    rf"|\s+(?:and|but|so|because|since|though|although|while|whereas)\s+"
    rf"(?=(?:(?:also|now|currently|please|actually|then)\s+)?(?:i|i'm|i've|my|call|people|everyone|please|remember|"
    rf"what|who|where|how|is|can|could|would|we|she|he|they|it|it's|you|the\s+\w+\s+(?:is|are))\b)"
    r"|\s+and\s+(?=(?:now |currently )?(?:live|work)\s+(?:in|at|for|as)\b)"
    r"|\s+(?=(?:if|unless|whenever|provided|when)\s+(?:i|my|you|we|he|she|they|it|the)\b)",
    re.I,
)
"""The boundary between two clauses: punctuation or a conjunction, before a word that can begin a clause."""

_OPENING = re.compile(
    r"(?:no(?! longer| one| more)|nope|nah|wait|sorry|oops|scratch that|hi|hello|hey|hiya|howdy|greetings|"
    r"good (?:morning|afternoon|evening|day)|dear|well|so|and|but|also|ok|okay|oh|yes|yeah|yep|sure|please|actually|"
    r"btw|by the way|fyi|for the record|for your information|anyway|then|now|today|just so you know|"
    r"just to let you know|as you know|in fact|to be clear|about me|a bit about me|you can|you may|"
    r"you should know(?: that)?|i should mention(?: that)?|nice to meet you|pleased to meet you|thanks|thank you|"
    r"as i (?:said|mentioned|told you)|there|everyone(?!\s+(?:just\s+)?calls)|all|again|first of all|currently|"
    r"personally|honestly)\b[\s,:!-]*",
    re.I,
)
"""Greetings and other words that open a clause and state nothing."""

_REMEMBERED = re.compile(r"(?:please )?(?:remember|note|keep in mind|don't forget|do not forget)(?: this| that)?", re.I)
"""A request before a colon: "Remember this: ..."."""

_INTRODUCED = re.compile(
    r"(?:no\W+)?(?:wait|sorry|correction|actually)|fyi|btw|by the way|about me|a bit about me|for the record|ps|p\.s\.|"
    r"to be clear|also|update|hi|hello|hey",
    re.I,
)
"""Words before a colon that only introduce what the person says: "By the way: ..."."""

_FORM = re.compile(
    r"(?:(?:please )?(?:remember|note) )?my (?:(?:first|last|full) )?(?:name|age|e-?mail(?: address)?|"
    r"phone(?: number)?|address|birthday|job|city|diet)",
    re.I,
)
"""The name of a fact before a colon: "My name: ..."."""

_QUESTION = re.compile(
    r"(?:who|whom|whose|what|what's|when|where|where's|why|how|which|is|isn't|are|aren't|am|was|were|do|does|did|"
    r"don't (?:i|you|we|they)|can|could|would|will|should|shall|have (?:i|you|we|they)|has|may|might|right|correct|"
    r"yes|no|guess)\b(?!\s+not\s+forget)",
    re.I,
)
"""The beginning of a question."""

_TAG = re.compile(
    r"(?:(?:is|isn't|are|aren't|am|do|don't|does|doesn't|did|didn't|was|wasn't|have|haven't|will|won't)(?:\s+\w+){1,2}|"
    r"right|correct|yes|no|true|ok|okay|(?:is that|am i|isn't that|that's) (?:right|correct|true|so|it))\W*",
    re.I,
)
"""A question at the end of a statement, which makes it uncertain: "I live in Rome, right?"."""

_FRAMED = re.compile(
    r".*\bago$|(?:as|from|for|in|on|during|at|under|within|per|by|like|with|without)\b(?!\s+(?:of|it happens|"
    r"addition|fact)\b)",
    re.I,
)
"""A first clause that says where or when the rest of the sentence holds: "As Hamlet, ...", "Years ago, ..."."""

_WITHOUT_SUBJECT = re.compile(r"(?:now |currently )?(?:live|work)\s+(?:in|at|for|as)\b", re.I)
"""A clause whose subject is in the clause before it: "(I have a dog and) live in Rome"."""

_SUPPOSED = re.compile(
    r"(?:if|unless|suppose|let's say|say|assuming|when|whenever|i wish|provided|in case|even if|as long as|maybe|"
    r"perhaps|what if|were i|had i|guess|let)\b",
    re.I,
)
"""The beginning of a supposition: "If ...", "Let's say ..."."""

_CONDITION = re.compile(r"(?:if|unless|whenever|provided|in case|as long as|or so)\b", re.I)
"""The beginning of a condition, which makes the clause before it a supposition."""


class Sentence(NamedTuple):
    """A sentence, and its clauses that are the person's own statements, without greetings and other openings."""

    text: str
    clauses: tuple[str, ...]


def own_sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a text in which a person speaks for themselves."""
    if len(text) > 2 * MOST_CHARACTERS:
        return ()
    plain = plain_marks(text)
    if len(plain) > MOST_CHARACTERS or _OF_ONESELF.search(plain) is None or is_borrowed(plain):
        return ()
    plain = _QUOTED.sub(lambda quoted: _replacement(quoted[0]), plain)
    found: list[Sentence] = []
    for paragraph in plain.split("\n\n"):
        sentences, ends = _paragraph_sentences(paragraph)
        if sentences is None:
            return ()
        found += sentences
        # If nothing before a blank line is about the person, the text after it is pasted.
        if ends or not any(_FIRST_PERSON.match(clause) for each in sentences for clause in each.clauses):
            break
    return tuple(found)


def _paragraph_sentences(paragraph: str) -> tuple[list[Sentence] | None, bool]:
    """Return a paragraph's own sentences, and whether the text after them is not the person's own.

    The sentences are None if a task is about the text before it ("... Translate this"): then nothing counts.
    """
    found: list[Sentence] = []
    for sentence in _SENTENCE.findall(_ABBREVIATED.sub(r"\1", paragraph)):
        sentence = sentence.strip()
        before_colon, ends = _before_colon(sentence)
        task = _TASK.match(without_opening(before_colon))
        if task is not None and task["object"]:
            return None, True
        if task is not None:
            return found, True
        clauses, hands_over, is_about_before = _own_clauses(before_colon)
        if is_about_before:
            return None, True
        if before_colon:
            found.append(Sentence(before_colon, clauses))
        if ends or hands_over:
            return found, True
    return found, False


def plain_marks(text: str) -> str:
    """Return a text's beginning with plain punctuation, and single spaces on each line."""
    return "\n".join(" ".join(line.split()) for line in text[:MOST_READ].translate(_PLAIN_QUOTES).splitlines())


def without_opening(clause: str) -> str:
    """Return a clause without greetings and other opening words."""
    clause = clause.lstrip(EDGES)
    while (opening := _OPENING.match(clause)) is not None and opening.end() < len(clause):
        clause = clause[opening.end() :]
    return clause


def _replacement(quoted: str) -> str:
    inner = quoted[1:-1].strip()
    if quoted[0] == "(":
        return ""
    is_a_name = len(inner.split()) <= 3 and not _FIRST_PERSON.search(inner) and quoted[-1] == quoted[0]
    return inner if is_a_name and inner else QUOTE_MARK


def _before_colon(sentence: str) -> tuple[str, bool]:
    """Return a sentence up to a colon that introduces somebody else's words, and whether there is such a colon.

    A colon does not count after words that only introduce what the person says ("By the way:").
    """
    for colon in re.finditer(r":(?=\s|$|\")", sentence):
        before = without_opening(sentence[: colon.start()]).strip(EDGES)
        if _FORM.fullmatch(before):
            return _before_colon(f"{sentence[: colon.start()]} is{sentence[colon.end() :]}")
        if _INTRODUCED.fullmatch(before):
            return _before_colon(f"{sentence[: colon.start()]},{sentence[colon.end() :]}")
        if before and not _REMEMBERED.fullmatch(before) and not _is_only_opening(before):
            return sentence[: colon.start()].rpartition(",")[0], True
    return sentence, False


def _own_clauses(sentence: str) -> tuple[tuple[str, ...], bool, bool]:
    """Return the clauses that a sentence states, and whether the text after it or before it is not the person's own."""
    clauses = [without_opening(clause).rstrip(" .,;:!?") for clause in _CLAUSE.split(sentence) if clause.strip(EDGES)]
    # A clause after "As Hamlet," or "For the test," is true only there.
    is_framed = len(clauses) > 1 and _FRAMED.match(clauses[0]) and not _is_only_opening(clauses[0])
    if not clauses or _SUPPOSED.match(clauses[0]) or is_framed:
        return (), False, False
    if sentence.endswith("?") and (_TAG.fullmatch(clauses[-1]) or not _QUESTION.match(clauses[-1])):
        return (), False, False
    stated: list[str] = []
    for index, clause in enumerate(clauses):
        clause = _AS_I_SAID.sub("", clause)
        if _is_only_opening(clause):
            continue
        if _WITHOUT_SUBJECT.match(clause) and index > 0 and _FIRST_PERSON.match(clauses[index - 1]):
            clause = f"I {clause}"
        task = _TASK.match(clause)
        if task is not None:
            return tuple(stated), True, task["object"] is not None
        if _HANDS_OVER.match(clause):
            return tuple(stated), True, False
        if _QUESTION.match(clause) and not clause.lower().startswith("no"):
            break
        if _REPORT.search(clause) and not (_OWN_REPORT.match(clause) or _FORGET.match(clause)):
            is_short = len(clause.split()) <= _SHORT_REPORT and index > 0
            is_open = index == len(clauses) - 1 and _OPEN_REPORT.search(clause) is not None
            return (() if is_short else tuple(stated)), is_open, False
        if _CONDITION.match(clause):
            stated = stated[:-1]
        elif not _SUPPOSED.match(clause) and QUOTE_MARK not in clause:
            stated.append(clause)
    return tuple(stated), False, False


def _is_only_opening(clause: str) -> bool:
    return without_opening(f"{clause} x") == "x"
