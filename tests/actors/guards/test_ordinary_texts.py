"""Large inputs of every day: the bounds on the work are no reason to refuse any of them."""

import base64
import hashlib
import json
import random
import sysconfig
import uuid
from pathlib import Path

from actors.appraisal.measures.trust import SATURATION, trust_of
from actors.reflex import ACTOR as REFLEX
from actors.reflex.decider import State
from schemas.actor import Message
from schemas.intake.limits import InputLimits
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.reflex import ReflexPassed
from tests.each import each

MOST = InputLimits().layer_bytes
DRAW = random.Random(4)
HERE = Path(__file__).parents[3]
STANDARD = Path(sysconfig.get_paths()["stdlib"])


def _hash(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def _images() -> str:
    words = "\n\nSome words about the picture, and what it shows.\n\n"
    return words.join(
        f"![plan](data:image/png;base64,{base64.b64encode(DRAW.randbytes(20_000)).decode()})" for _ in range(14)
    )


TEXTS = {
    "a lock file": (HERE / "requirements.lock").read_text(),
    "a module of 200 KB": (STANDARD / "_pydecimal.py").read_text(),
    "modules in a document": json.dumps(
        [{"path": each.name, "text": each.read_text()} for each in sorted((STANDARD / "asyncio").glob("*.py"))]
    )[:290_000],
    "a changelog": (HERE / "CHANGELOG.md").read_text(),
    "a table of 20,000 rows": "\n".join(f"{n},{'AB'[n % 2]}élène,{n * 7919 % 10**6}" for n in range(20_000)),
    "uuids": "\n".join(f"{uuid.UUID(int=DRAW.getrandbits(128))},{n}" for n in range(9_000)),
    "4,000 hashes": "\n".join(f"{_hash(n)}  file{n}.txt" for n in range(4_000)),
    "a log of commits": "\n".join(f"commit {_hash(n)[:40]}\n\n    Mend the thing number {n}\n" for n in range(4_000)),
    "integrity fields": "\n".join(
        f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(bytes([n % 251, n // 251])).digest()).decode()}"'
        for n in range(2_200)
    ),
    "images in markdown": _images(),
    "escaped letters": json.dumps([f"Die Größe der Städte in ihrer Übersicht, {n}" for n in range(6_000)]),
    "certificates": "\n".join(base64.b64encode(DRAW.randbytes(48)).decode() for _ in range(5_500)),
    "a hex dump": "\n".join(f"{n * 16:08x}  {DRAW.randbytes(16).hex(' ')}  |..|" for n in range(1_400)),
    "generated names": " ".join(f"api-{_hash(n)[:10]}-{_hash(n)[-5:]} 1/1 Running {n}d\n" for n in range(2_000)),
    "a table as NumPy writes it": "\n".join(
        " ".join(f"{DRAW.gauss(0, 1):.18e}" for _ in range(4)) for _ in range(1_750)
    ),
    "numbers": " ".join(f"{DRAW.random():.6f}" for _ in range(40_000)),
}


@each("name", sorted(TEXTS))
def test_a_large_text_of_every_day_is_looked_at_in_full(name: str) -> None:
    text = TEXTS[name][:MOST]
    received = InputReceived(text="Please look at this.", layers=(Layer(role="document", content=text),))
    message = Message(event=received, seq=1, id="i", time_ns=1, agent="a", session="s", exchange="e")

    (verdict,) = REFLEX.decide(State(), message)

    assert isinstance(verdict, ReflexPassed)
    assert verdict.unread == ()
    assert trust_of("document[0]", text).falsehood < SATURATION
