"""The forms that docs/guards.md says no guard reads: the list is as long as it must be, and no longer."""

import base64
import binascii
import bz2
import codecs
import gzip
import json
import re
import string
import zlib
from pathlib import Path

from actors.reflex.decider import State, decide
from schemas.actor import Message
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexBlocked
from tests.actors.guards.disguising import PHRASE

GUIDE = Path(__file__).parents[3] / "docs" / "guards.md"
DATA, WORDS = PHRASE.encode(), PHRASE.split()
LETTERS = [sign for sign in PHRASE if sign.isalpha()]
DIGITS, SMALL, LARGE = string.digits, string.ascii_lowercase, string.ascii_uppercase
NATO = re.findall(
    r"\w+",
    "Alpha Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar Papa Quebec Romeo "
    "Sierra Tango Uniform Victor Whiskey Xray Yankee Zulu",
)
BRAILLE = "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵"
SQUARE = SMALL.replace("j", "")


def to_base(signs: str) -> str:
    number, said = int.from_bytes(DATA, "big"), ""
    while number:
        number, place = divmod(number, len(signs))
        said = signs[place] + said
    return said


def shifted(text: str, key: str) -> str:
    letters = iter(range(len(text)))
    return "".join(
        SMALL[(SMALL.index(sign) + SMALL.index(key[next(letters) % len(key)])) % 26] if sign in SMALL else sign
        for sign in text
    )


def in_lines(run: str, length: int) -> str:
    return "\n".join(run[at : at + length] for at in range(0, len(run), length))


NOT_READ = {
    "base32hex": base64.b32hexencode(DATA).decode(),
    "Crockford's base32": to_base("0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
    "base36": to_base(DIGITS + SMALL),
    "base58": to_base("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
    "base62": to_base(DIGITS + LARGE + SMALL),
    "base100": "".join(chr(0x1F3F7 + code) for code in DATA),
    "uuencode": "\n".join(binascii.b2a_uu(DATA[at : at + 45]).decode() for at in range(0, len(DATA), 45)),
    "yEnc": "".join(chr((code + 42) % 256) for code in DATA),
    "base85 in lines of under 20 signs": in_lines(base64.b85encode(DATA).decode(), 16),
    "gzip": base64.b64encode(gzip.compress(DATA)).decode(),
    "zlib": zlib.compress(DATA).hex(),
    "bzip2": base64.b64encode(bz2.compress(DATA)).decode(),
    "EBCDIC": base64.b64encode(codecs.encode(PHRASE, "cp037")).decode(),
    "combined with a key": bytes(code ^ 42 for code in DATA).hex(),
    "Braille": "".join(BRAILLE[SMALL.index(sign)] if sign in SMALL else sign for sign in PHRASE),
    "the NATO alphabet": " ".join(NATO[SMALL.index(sign)] for sign in LETTERS),
    "a Polybius square": " ".join(f"{SQUARE.index(sign) // 5 + 1}{SQUARE.index(sign) % 5 + 1}" for sign in LETTERS),
    "Bacon's cipher": " ".join(f"{SMALL.index(sign):05b}".replace("0", "A").replace("1", "B") for sign in LETTERS),
    "Vigenère": shifted(PHRASE, "lemon"),
    "a rail fence": PHRASE[::2] + PHRASE[1::2],
    "keys beside the right ones": PHRASE.translate(str.maketrans("qwertyuioasdfghjkl", "wertyuiopsdfghjkl;")),
    "codes of three digits without anything between": "".join(f"{code:03d}" for code in DATA),
    "words in reverse order": " ".join(reversed(WORDS)),
    "Pig Latin": " ".join(f"{word[1:]}{word[0]}ay" for word in WORDS),
    "doubled letters": "".join(sign * 2 for sign in PHRASE),
    "another letter behind each": "".join(f"{sign}x" for sign in PHRASE),
    "first letters of lines": "\n".join(f"{sign}nother line of a poem" for sign in LETTERS),
    "numbered lists": "\n".join(f"{number}. {word}" for number, word in enumerate(WORDS, 1)),
    "a column of a table": "word,count\n" + "\n".join(f"{word},{number}" for number, word in enumerate(WORDS)),
    "settings whose values have no quotes": "\n".join(f"key{number} = {word}" for number, word in enumerate(WORDS)),
    "the lines of a log": "\n".join(
        f"12:00:0{at} INFO {' '.join(WORDS[at : at + 2])}" for at in range(0, len(WORDS), 2)
    ),
    "`REM`": "\n".join(f"REM {' '.join(WORDS[at : at + 2])}" for at in range(0, len(WORDS), 2)),
    "subtitles": "\n\n".join(f"{at}\n00:00:0{at},000 --> 00:00:0{at},900\n{word}" for at, word in enumerate(WORDS)),
    "written as one": PHRASE.replace("all prior", "allprior"),
    "right behind a word": PHRASE.replace(" prior ", ". Prior ").replace(" system ", "; system "),
    "`0b01100100`": " ".join(f"0b{code:08b}" for code in DATA),
    "`[char]100`": "+".join(f"[char]{code}" for code in DATA),
    "`Chr(100) & Chr(105)`": " & ".join(f"Chr({code})" for code in DATA),
    "the columns of `od`": in_lines("".join(f" {code:03o}" for code in DATA), 64).replace("\n", "\n0000020"),
    "base32 in groups parted by signs": in_lines(base64.b32encode(DATA).decode(), 4).replace("\n", "-"),
    "variables of a shell": "; ".join(f"v{number}={word[:4]}" for number, word in enumerate(WORDS)),
    "strings of a PDF": "[" + "-20".join(f"({PHRASE[at : at + 4]})" for at in range(0, len(PHRASE), 4)) + "] TJ",
    "backspaces": "".join(f"x\b{sign}" for sign in PHRASE),
}


def is_blocked(text: str) -> bool:
    message = Message(InputReceived(text=text), seq=1, id="i", time_ns=1, agent="a", session="s", exchange="e")
    return isinstance(decide(State(), message)[0], ReflexBlocked)


def test_each_form_that_the_guide_names_as_not_read_is_not_read() -> None:
    listed = GUIDE.read_text().partition("### What is not read")[2].partition("\n#")[0]

    assert [form for form in NOT_READ if form not in listed] == [], "name it in docs/guards.md"
    assert [form for form, text in NOT_READ.items() if is_blocked(text)] == [], "take it out of docs/guards.md"


def test_a_form_that_is_read_is_told_from_these() -> None:
    assert is_blocked(json.dumps({"text": base64.b64encode(DATA).decode()}))
