"""The wordings that the router recognises, as compiled patterns over case-folded text with plain apostrophes.

Every pattern is an alternation of short phrases with bounded repetition: none can backtrack more than a few words, so
matching is linear in the text. Patterns over a *clause* or *sentence* expect single spaces between words.
"""

import re
from typing import NamedTuple

_END = r"(?![\w'-])"
_START = r"(?<![\w'-])"

_GREETING = (
    r"(?:hi+|hey+|hello+|hullo|hiya|heya|howdy|yo+|sup|wass?up|what's (?:up|new)|whats up|greetings|salutations|g'day"
    r"|good (?:morning|afternoon|evening|day)|morning|afternoon|evening|welcome back|long time no see"
    r"|hola|bonjour|ciao|hallo|salut|namaste|aloha|servus|moin)"
)
_PARTING = (
    r"(?:bye(?:[ -]bye)?|goodbye|good[ -]bye|good ?night|night night|farewell|cya|ttyl|take care|sleep well|so long"
    r"|see (?:you|ya)(?: (?:later|soon|around|tomorrow|then|again|next (?:time|week)|(?:on )?(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)day))?|(?:i'll )?(?:talk|speak) to you (?:later|soon|tomorrow|then)|talk (?:later|soon)"
    r"|until (?:next time|tomorrow|then)|(?:i )?(?:have to|got to|gotta|must) go"
    r"|(?:have|enjoy) (?:an?|your|the) (?:(?:nice|good|great|lovely|wonderful|pleasant|rest of the) ){0,2}"
    r"(?:day|evening|night|morning|afternoon|week|weekend|trip|holiday|one))"
)
# The object of thanks extends to the end of the clause, or to a word that begins another topic.
_THANKS = (
    r"(?:(?:many |big |ok |okay )?(?:thanks|thank (?:you|u|ya)|thx|tysm|ty|cheers)"
    r"(?: (?:so much|very much|a lot|a million|a ton|a bunch|heaps|again|anyway))?"
    r"(?: for(?: (?!now\b|but\b|can\b|could\b|please\b|and\b|then\b)[\w'-]+){1,12})?"
    r"|(?:(?:much|greatly) )?appreciated|(?:i )?(?:(?:really|do|truly|much) )?appreciate (?:it|that|this|you doing that"
    r"|(?:your|the|all the) (?:help|effort|time|work))"
    r"|i(?:'m| am) (?:(?:very|so|really) )?(?:grateful|thankful)(?: for (?:it|this|that|your help))?|i owe you one)"
)
_DEGREE = r"(?:(?:all|just|so|very|really|super|extremely|quite|absolutely|totally|pretty|most|exactly|a|an|the) ){0,2}"
_PRAISE = (
    r"(?:great|perfect|awesome|excellent|amazing|fantastic|brilliant|wonderful|superb|lovely|nice|cool|good|sweet|neat"
    r"|impressive|beautiful|outstanding|terrific|splendid|marvell?ous|fabulous|helpful|useful)"
    r"(?! to (?:see|meet|hear from) you)"
)
_PRAISED = (
    r"(?:one|job|work|answer|stuff|idea|point|thinking|explanation|find|catch|call|response|reply|news|suggestion"
    r"|question|summary|advice|tip|example|help|talk|chat)"
)
_APPROVAL = (
    rf"(?:{_DEGREE}{_PRAISE}(?: {_PRAISED})?|well done|bravo|kudos|nicely done|not bad(?: at all)?|spot on|precisely"
    r"|exactly(?: (?:right|(?:what|how) i (?:needed|wanted|meant|asked for|was looking for)))?|(?:just )?what i needed"
    r"|(?:that|this|it)(?:'s| is| was)? (?:it|right|correct|exactly (?:right|what i (?:needed|wanted|meant)))"
    rf"|(?:that|this|it|you)(?:'s| is| was|'re| are| were|'ve been| have been) {_DEGREE}{_PRAISE}(?: {_PRAISED})?"
    r"|(?:(?:that|this|it|which) )?(?:(?:really|totally|all|just) )?(?:makes sense|worked|works|helped|helps"
    r"|did (?:it|the trick)|fixed it|solved it|answers my question)"
    r"(?: (?:now|great|perfectly|fine|well|a lot|for me|like a charm))?"
    r"|(?:(?:that|this|it) )?sounds (?:good|great|perfect|fine|right|fair|like a plan)|correct|right"
    r"|you(?:'re| are) (?:right|the best|a (?:star|genius|lifesaver|legend))|you (?:saved|made) my (?:day|life)"
    r"|i (?:(?:really|just|absolutely) )?(?:love|like|loved|liked|enjoyed) (?:it|this|that|our (?:talk|chat)"
    r"|(?:talking|speaking|chatting) (?:to|with) you)"
    r"|glad (?:to hear (?:it|that)|that (?:worked|helped))|👍|🙏|❤|😊|🎉|👏|💯|😍|🙌)"
)
_ACCEPTANCE = (
    r"(?:ok|okay|k|kk|alright|all right|understood|(?:i )?(?:got it|see|understand)|gotcha|noted|fair enough|will do"
    r"|fine|agreed|roger|no (?:worries|problem)|np)"
)
# Words without content of their own beside a greeting, thanks or approval.
_COURTESY = (
    r"(?:oh|ah|aha|wow|well|(?:ha){2,8}|hehe|lol|yes|yeah|yep|yup|sure|indeed|really|very|so|too|then|now|again|back"
    r"|so much|(?:to )?you too|for (?:now|everything|today|your (?:help|time))|likewise|same to you|you're welcome"
    r"|you are welcome|that's all(?: for (?:now|today))?|there|all|everyone|everybody|folks|team|guys|friends?|buddy"
    r"|mate|man|dude|bot|assistant|y'all|sir|madam|(?:it's |it is )?(?:nice|good|great|lovely) to "
    r"(?:see|meet|hear from) (?:you|you all)(?: (?:too|again))?|how (?:are|r) (?:you|u|things)"
    r"(?: (?:doing|today|all|feeling|going)){0,2}|how(?:'s|s| is) (?:it going|everything|life|your day)|how do you do"
    r"|my name is [^\W\d_]{2,20}|👋)"
)
_NOT_A_NAME = (
    r"(?:help|please|questions?|continue|stop|wait|more|next|proceed|go|undo|retry|repeat|cancel|explain|start|run|restart"
    r"|shorter|longer|faster|simpler|delete|deploy|fix|why|what|how|who|whom|whose|when|where|which|no|not|nope|but|and"
    r"|or|can|could|would|should|i|is|are|do|does|did|the|a|an|my|your|we|it|this|that|show|tell|give|send|open|make|need"
    r"|want|try|check|add|write|list|search|find|look|read|call|book|play|set|turn|test|update|problem|error|urgent)"
)

SOCIAL = re.compile(rf"{_START}(?:{_PARTING}|{_THANKS}|{_APPROVAL}|{_COURTESY}|{_GREETING}|{_ACCEPTANCE}){_END}")
"""A phrase of greeting, parting, thanks, approval, acceptance or mere courtesy, anywhere in a clause."""

GREETING_OPENING = re.compile(rf"(?:(?:oh|ah|ok|okay|well) )?(?:{_GREETING}|{_PARTING}|👋){_END}")
"""A greeting, on meeting or parting, at the start of a clause."""

POSITIVE = re.compile(rf"{_START}(?:{_THANKS}|{_APPROVAL}|{_ACCEPTANCE}){_END}")
"""Thanks, approval or acceptance in a clause."""

NAME_ADDRESSED = re.compile(rf"(?:{_GREETING}|{_PARTING}|{_THANKS}),? (?!{_NOT_A_NAME}\b)[^\W\d_]{{2,20}}")
"""A whole clause that greets or thanks someone by a name."""

NAME = re.compile(rf"(?!{_NOT_A_NAME}\b)[^\W\d_]{{2,20}}")
"""A whole clause that may be the name of the person addressed."""

COMMENT = re.compile(
    r"(?:you|that|this|it|i'll|i will|i'm going to|i am going to|we'll|will|i learn(?:ed|t)|everything|all"
    rf"|what an?|such|just|exactly|very|really|so|much|{_PRAISE})\b"
)
"""The start of a clause that adds to praise or thanks, and does not ask for something."""

FURTHER = re.compile(
    r"(?:n't|\b(?:but|however|still|need|want|please|problems?|issues?|errors?|questions?|another|wrong|fails?|failed"
    r"|crash|crashes|broken|can|could|would|should|not|instead|also|if|make|add|write|change|explain|show|tell|give"
    r"|try to))\b"
)
"""A word of a clause after praise or thanks that shows that the clause asks for something."""

_DISAPPROVED = (
    r"(?:helpful|useful|correct|right|accurate|true|it|ideal|clear|relevant|enough"
    r"|what i (?:asked|meant|wanted|want|needed|need|said|was (?:asking|looking))"
    rf"|an? (?:{_PRAISE}|helpful|useful|correct) (?:answer|idea|reply|response)|{_PRAISE}(?! (?:to|for|if|that)\b))"
)
_MUCH = r"(?:(?:very|really|so|too|all that|that|quite|even|at all) ){0,2}"
_SUBJECT = r"(?:that|this|it|you|(?:your|the|that|this) (?:answer|reply|response|explanation|suggestion|summary))"
_SUBJECT_BE = rf"{_SUBJECT}(?:'s|'re| is| are| was| were)"
NEGATIVE = re.compile(
    rf"(?:no[, ] ?)?(?:"
    rf"(?:{_SUBJECT_BE} )?(?:not|never|hardly|far from) {_MUCH}{_DISAPPROVED}{_END}"
    rf"|{_SUBJECT} (?:isn't|wasn't|aren't|weren't) {_MUCH}{_DISAPPROVED}{_END}"
    rf"|{_SUBJECT_BE} (?:(?:just|still|simply|totally|completely|so|plain|all|very|obviously|also) ){{0,2}}"
    r"(?:wrong|incorrect|useless|unhelpful|bad|terrible|awful|false|nonsense|rubbish|garbage|mistaken)\b"
    rf"|{_SUBJECT} (?:(?:still|really|just) )?(?:doesn't|does not|didn't|did not|don't|do not) "
    r"(?:(?:really|even|actually) )?(?:help|work|answer|make (?:any )?sense)\b"
    r"|you (?:(?:completely|totally|have|still) )?(?:misunderstood|misread|got (?:it|that|this) wrong|made a mistake"
    r"|missed (?:the|my) point)\b"
    r"|i (?:(?:really|still) )?(?:don't|do not|didn't) (?:like|want) (?:it|this|that)\b"
    r"|i (?:don't|do not|wouldn't|would not) (?:think|believe|say|find) "
    rf"(?:so$|(?:{_SUBJECT_BE}|it) {_DISAPPROVED}{_END})"
    r"|(?:still )?(?:wrong|incorrect|useless|unhelpful|terrible|awful|rubbish|nonsense|(?:bad|wrong) answer"
    r"|try again)$)"
)
"""Disapproval of an answer at the start of a clause; a word of degree or two may follow its negation."""

_INTERJECTIONS = (
    r"(?:(?:and|but|so|ok|okay|well|also|then|now|um|uh|oh|hey|hi|hello|no|yes|yeah|sorry|please|thanks|great|wait|sure"
    r"|alright|right|just)\b,? ?){0,4}"
)
_PRONOUN = r"(?:you|we|they|i|he|she|it|there|this|that|these|those|anyone|anybody|someone|somebody)"
_DETERMINER = r"(?:the|my|your|his|her|our|their|any)"
_AUXILIARY = (
    r"(?:is|are|am|was|were|do|does|did|can|could|will|would|should|shall|has|have|had|may|might|must"
    r"|isn't|aren't|wasn't|weren't|don't|doesn't|didn't|can't|couldn't|won't|wouldn't|shouldn't|hasn't|haven't)"
)
QUESTION_OPENING = re.compile(
    rf"{_INTERJECTIONS}(?:"
    # A question word, unless the following words make it an exclamation, a relative clause or a condition.
    r"what(?:'s|s|'re|'d)?(?![\w'-])(?! an? | (?:i|you|he|she|we|they|it)\b)"
    r"|which(?![\w'-])(?! (?:means|makes|made|(?:is|was) (?:why|what|how|when|where|great|fine|good))\b)"
    r"|(?:whom|whose|who(?:'s|s|'d)?)(?![\w'-])(?! (?:knows|cares)\b)"
    r"|why(?:'s|'d)?(?![\w'-])(?! (?:i|he|she|they)\b)"
    r"|how(?:'s|s|'d|'re)?(?![\w'-])(?! (?:i|you|he|she|we|they|nice|kind|sweet|lovely|cool|wonderful|funny|sad|awful"
    r"|terrible|strange|odd|cute|beautiful|interesting|exciting)\b)"
    rf"|(?:when|where)(?:'s|s| (?:{_AUXILIARY}|to|else|exactly)(?![\w'-])|$)"
    # An auxiliary verb before its subject; a bare verb after it would be a statement or a command without subject.
    r"|(?:is|are|am|was|were|does|did|has|isn't|aren't|wasn't|weren't|doesn't|didn't|hasn't) "
    r"(?!(?:it|that|this)$|(?:not|been|thinking|wondering|great|good|nice|fine|ok|broken|really|so|very|just)\b)\w"
    r"|(?:can|could|should|would|can't|couldn't|shouldn't|wouldn't) "
    r"(?!be\b|have\b|not\b|love\b|like\b|prefer\b|need\b|use\b|work\b|do\b|go\b|openers?\b)\w"
    rf"|(?:will|won't) (?:{_PRONOUN}|{_DETERMINER})\b"
    r"|(?:may|shall|might|must|don't|have|haven't) (?:you|we|they|i|people|he|she|anyone|any)\b"
    # After "do", a bare noun is a subject ("do ducks sleep"), a definite one an object ("do the dishes").
    r"|do (?!not\b|it\b|th(?:e|is|at|ese|ose)\b|an?\b|(?:my|your|his|her|our|their)\b|what\b|so\b|as\b|some"
    r"|all\b|both\b|more\b|less\b|better\b|nothing\b|every|one\b|another\b|something\b|me\b)\w+ \w"
    r")"
)
"""A question by its first words, at the start of a sentence."""

QUESTION_AFTER_COMMA = re.compile(
    r"[,—–-] (?:can|could|would|will|should|do|does|did|is|are|have|may|what's|what (?:is|are|should|can|do|does)"
    r"|how (?:do|can|should|about|much|many)) (?:you|we|they|i|he|she|there|anyone|someone)\b"
    r"|[,—–-] (?:what|how) (?:is|are|should|about|do|does|can|much|many)\b"
)
"""A question that begins after a comma or dash: after an address, thanks, or a condition."""


class Reference(NamedTuple):
    """A way of referring to what this user and this agent said or did together; past tense alone is none.

    Every match of ``pattern`` contains one of ``words``, begins at most ``before`` characters before that word, and
    ends less than ``REFERENCE_LENGTH`` after the word's beginning. The word directly follows one of the texts in
    ``after``, unless that is empty, and is directly followed by ``then``.
    """

    pattern: re.Pattern[str]
    words: frozenset[str]
    before: int
    after: tuple[str, ...] = ()
    then: str = ""


def _each(words: str) -> frozenset[str]:
    return frozenset(words.split())


REFERENCE_LENGTH = 48
"""Most characters of a reference from the beginning of its word, including what is checked after it."""

_WE_HAVE = r"(?:we|you and i|we've|we'd) (?:(?:had|have|just|already|also|both) ){0,2}"
_SHARED_BEFORE = (
    r"(?:i|you|we) (?:said|mentioned|shared|posted|pasted|uploaded|described|listed|used|tried)(?: \w{1,20}){0,3}"
)
IMPLICIT_REFERENCES = (
    Reference(
        re.compile(
            r"\b(?:(?:do|don't|did|can|if) you (?:still )?(?:remember|recall)|^you (?:remember|recall)"
            r"|[,.] you remember|remember when (?:we|i|you)"
            r"|remember (?:what|how|where|which|that \w{1,20}) (?:we|i|you)"
            r"|remind me (?:again )?(?:of )?(?:what|which|where|when|how|why|who) (?:we|i|you|my|our))\b"
        ),
        _each("remember recall remind"),
        before=24,
    ),
    Reference(
        re.compile(
            rf"\b(?:{_WE_HAVE}(?:discussed|talked about|spoke about|spoken about|agreed|decided|covered)"
            r"|(?:did|have) we (?:ever )?(?:discuss|discussed|talk|talked|agree|agreed|decide|decided|speak|settle)"
            r"|where (?:did )?we (?:leave|left|stop|stopped)|we left off)\b"
        ),
        _each(
            "discuss discussed talk talked speak spoke spoken agree agreed decide decided covered settle leave "
            "left stop stopped"
        ),
        before=32,
        after=("we ", "i ", "we've ", "we'd ", "had ", "have ", "just ", "already ", "also ", "both ", "ever "),
    ),
    Reference(
        re.compile(
            r"\b(?:(?:as|like|what) (?:i|we) (?:already |just )?(?:said|mentioned|told you|explained)"
            r"|(?:as|like|what|which|that) you (?:already |just )?(?:said|mentioned|told|wrote|explained|suggested"
            r"|recommended|proposed|promised)"
            r"|you (?:just |already |once )?(?:said|told me|mentioned|suggested|recommended|promised|proposed)"
            r"|(?:did|have) (?:i|you) (?:already |ever )?(?:say|said|tell you|tell me|told|mention|mentioned|suggest"
            r"|recommend)"
            r"|i (?:just |already |once )?(?:told|asked|showed|gave|sent) you)\b"
        ),
        _each(
            "say said tell told mention mentioned explained wrote suggest suggested recommend recommended "
            "proposed promised asked showed gave sent"
        ),
        before=24,
        after=("i ", "we ", "you ", "already ", "just ", "once ", "ever "),
    ),
    Reference(
        re.compile(
            r"\b(?:our (?:last|previous|earlier|first) (?:chat|conversation|discussion|session|talk|exchange|call)"
            r"|my (?:last|previous|earlier) (?:question|message|request)"
            r"|your (?:last|previous|earlier|first) (?:question|message|answer|suggestion|reply))\b"
        ),
        _each("last previous earlier first"),
        before=8,
        after=("our ", "my ", "your "),
    ),
    Reference(
        re.compile(
            r"\b(?:last time (?:we (?:talked|spoke|met|chatted|discussed|worked|tried|did|used)|you"
            r"|i (?:asked|told|said|mentioned))|(?:like|as|from|than|since) last time|(?<!the )last time(?=[?.!,;:]|$)"
            rf"|{_SHARED_BEFORE} last time)\b"
        ),
        _each("last"),
        before=96,
        then=" time",
    ),
    Reference(re.compile(rf"\b{_SHARED_BEFORE} (?:earlier|previously)\b"), _each("earlier previously"), before=96),
)
"""The ways of referring to shared history."""

CLARIFICATION = re.compile(
    rf"{_INTERJECTIONS}(?:"
    r"(?:what )?i (?:really |actually )?(?:meant\b(?! (?:well|it as|no)\b)"
    r"|mean (?:is|was|the|an?|my|our|your|his|her|their|this|these|those|what|how|wh(?:en|ere|y|ich|o)|by|in|for)\b)"
    r"|i(?:'m| am| was) (?:asking|talking|referring|looking) (?:about|for|to|if|whether|how|wh(?:at|y|en|ere|ich|o))\b"
    r"|i (?:asked|said|wanted|was after)\b"
    r"|my question (?:is|was)\b"
    rf"|(?:{_SUBJECT_BE} |{_SUBJECT} (?:isn't|wasn't) )?(?:not )?what i (?:meant|asked|wanted|said|was asking)\b"
    r"|you (?:completely |totally |have )?(?:misunderstood|misread|got (?:it|that|me|this) wrong"
    r"|missed (?:the|my) point)\b"
    r"|to (?:clarify|be (?:clear|precise|more (?:precise|specific|clear)))\b"
    r"|let me (?:rephrase|clarify|be (?:clear|more (?:clear|specific|precise))|put it (?:another way|differently)"
    r"|say (?:it|that) (?:again|differently)|ask (?:again|differently))\b"
    r"|(?:in other words|put differently|to put it (?:another way|differently))\b)"
)
"""The start of a clause that rewords or corrects the previous message."""

FUNCTION_WORDS = _each(
    "a about an and any are aren't as at be been but by can can't could did didn't do does doesn't don't for "
    "from had has have he her his how how's i i'd i'll i'm i've if in is isn't it it's its just let's may me "
    "might my no not now of on or our out please she should so some than that that's the their them then "
    "there there's these they this those to up us was wasn't we were what what's when where where's which who "
    "who's why will with would you your"
)
"""Words that two messages may share whatever they are about."""
