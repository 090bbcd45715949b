"""Memory: the cost of a recall over many episodes, compared with plain numpy brute force over the same vectors.

Episodes are random embeddings of whole numbers, grouped in topics, so that questions have near ones. ``search`` is the
index alone, ``recall`` all that ``memory.recalled`` lists (turns, gists of exchanges, 900 facts, episodes, concepts),
``remember`` one more exchange in the state and its index, at capacity, so that each drops the oldest. Peers hold the
same vectors: as int8, converted for each question; as int32; and normalised as float32, which is not exact. The exact
ones must find the same episodes. Run it with ``python -m bench.decisions.memory [EPISODES...]``.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from actors.memory.agent_memory import AgentMemory, with_exchange
from actors.memory.layers.episodes import Episode, Episodes, weight_of
from actors.memory.layers.session import Gist, Session, turn_of
from actors.memory.recall import Cue, recall
from actors.memory.settings import MemorySettings
from bench.harness.table import percentiles, record
from schemas.persistent import decode_state, encode_state
from schemas.vocabulary.memory import Fact

SIZES = (10_000, 100_000)
"""Numbers of episodes."""

WIDTHS = (128, 256)
"""How many numbers an embedding has."""

MOST_RETURNED = 8
"""Episodes that a search returns at most."""

SECONDS_PER_CASE = 2.0
BUDGET_MS = 50.0
"""What a recall should take at most, in milliseconds."""

_MODEL = "bench"
_HOUR_NS = 3_600 * 10**9
_TOPICS = 500  # groups of episodes with similar embeddings
_SESSION = "session"

Vectors = npt.NDArray[np.int8]
"""An embedding, or one in each row."""
Search = Callable[[Vectors], list[int]]
"""A question's embedding -> the indexes of the nearest episodes, the nearest first."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Times are milliseconds; ``p50_ratio`` is a peer's median divided by that of the index's search."""

    episodes: int
    width: int
    case: str
    p50_ms: float
    p99_ms: float
    p50_ratio: float | None = None


class _Setup(NamedTuple):
    """An agent's memory full of episodes, and questions near some of them.

    ``weights`` are the factors by which the similarities of its episodes are multiplied.
    """

    memory: AgentMemory
    vectors: Vectors
    weights: npt.NDArray[np.float64]
    questions: Vectors
    settings: MemorySettings


def run(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Measure all cases of each size and width, in turn; 100,000 episodes take about a minute."""
    for size in sizes:
        for width in WIDTHS:
            yield from _rows(size, width)


def _rows(size: int, width: int) -> Iterator[Row]:
    setup = _make_setup(size, width)
    ours = _search(setup)
    for name, peer in _peers(setup).items():
        for question in setup.questions[:50]:
            assert name.startswith("float32") or peer(question) == ours(question), f"{name} and the index differ"
    searched = _measured(ours, setup)
    yield _row(size, width, "search", searched)
    yield _row(size, width, "recall", _measured(_recall(setup), setup))
    yield _row(size, width, "remember", percentiles(_remember(setup), SECONDS_PER_CASE))
    for name, peer in _peers(setup).items():
        yield _row(size, width, name, _measured(peer, setup), searched)
    print(f"{size} episodes of {width}: snapshot {len(encode_state(setup.memory)) / size:.0f} B each", file=sys.stderr)
    yield _row(size, width, "first recall after a snapshot", _after_snapshot(setup))


def _make_setup(size: int, width: int) -> _Setup:
    draw = np.random.default_rng(20240917)
    topics = draw.normal(size=(_TOPICS, width))
    vectors = _quantised(topics[draw.integers(0, _TOPICS, size)] + draw.normal(size=(size, width)))
    questions = _quantised(topics[draw.integers(0, _TOPICS, 256)] + draw.normal(size=(256, width)))
    salience = draw.random(size).round(6).tolist()
    settings = MemorySettings(episodes=size)
    memory = AgentMemory()
    for number in range(size):
        memory = with_exchange(memory, _episode(number, vectors[number], salience[number]), _facts(number), settings)
    weights = np.array([weight_of(memory.episodes.kept[number + 1]) for number in range(size)])
    return _Setup(memory, vectors, weights, questions, settings)


def _quantised(vectors: npt.NDArray[np.float64]) -> Vectors:
    whole: Vectors = np.rint(vectors * 127.0 / np.abs(vectors).max(axis=1, keepdims=True)).astype(np.int8)
    return whole


def _episode(number: int, vector: Vectors, salience: float) -> Episode:
    concepts = tuple(f"word{number * step % 1009}" for step in (1, 7, 31, 101))
    return Episode(
        session=_SESSION,
        topic=f"topic-{number % _TOPICS}",
        text=f"Asked: what is to be done about {' and '.join(concepts)}? Answered: nothing for the moment.",
        salience=salience,
        at_ns=number * _HOUR_NS // 1000,
        model=_MODEL,
        embedding=vector.tobytes(),
        concepts=concepts,
    )


def _facts(number: int) -> tuple[Fact, ...]:
    return (Fact(key=f"favourite {number % 900}", value=f"word{number}"),) if number < 900 else ()


def _search(setup: _Setup) -> Search:
    def search(question: Vectors) -> list[int]:
        return [
            each.number - 1
            for each in setup.memory.episodes.ranking(_MODEL, question.tobytes()).strongest(MOST_RETURNED)
        ]

    return search


def _recall(setup: _Setup) -> Search:
    session = Session()
    for number in range(len(setup.vectors) - 40, len(setup.vectors)):
        gist = Gist(number, "topic-1", "Asked: what is to be done?", _HOUR_NS)
        session = session.remembering(turn_of(number, "What is to be done?", "Nothing."), gist, setup.settings)

    def search(question: Vectors) -> list[int]:
        cue = Cue(("favourite", "word7", "word31"), _MODEL, question.tobytes())
        recall(setup.memory, session, cue, 2 * _HOUR_NS, setup.settings)
        return []

    return search


def _remember(setup: _Setup) -> Callable[[], object]:
    numbers = count(len(setup.vectors))
    latest = [setup.memory]

    def remember() -> None:
        number = next(numbers)
        vector = setup.vectors[number % len(setup.vectors)]
        latest[0] = with_exchange(latest[0], _episode(number, vector, 0.5), (), setup.settings)

    return remember


def _peers(setup: _Setup) -> dict[str, Search]:
    squares = (setup.vectors.astype(np.int64) ** 2).sum(axis=1)

    def nearest(dots: npt.NDArray[Any], question: Vectors) -> list[int]:
        own = int((question.astype(np.int64) ** 2).sum())
        energies = np.round(np.maximum(dots / np.sqrt((squares * own).astype(np.float64)), 0.0) * setup.weights, 6)
        return np.lexsort((-np.arange(len(energies)), -energies))[:MOST_RETURNED].tolist()  # type: ignore[no-any-return]

    as_int32 = setup.vectors.astype(np.int32)
    lengths = np.sqrt(squares.astype(np.float32))
    normalised = setup.vectors.astype(np.float32) / lengths[:, None] * setup.weights.astype(np.float32)[:, None]

    def inexact(question: Vectors) -> list[int]:
        energies = normalised @ (question.astype(np.float32) / np.float32(np.linalg.norm(question.astype(np.float32))))
        best = np.argpartition(-energies, MOST_RETURNED)[:MOST_RETURNED]
        return best[np.argsort(-energies[best])].tolist()  # type: ignore[no-any-return]

    return {
        "numpy int8, sorted": lambda question: nearest(
            setup.vectors.astype(np.int32) @ question.astype(np.int32), question
        ),
        "numpy int32, sorted": lambda question: nearest(as_int32 @ question.astype(np.int32), question),
        "float32, inexact": inexact,
    }


def _after_snapshot(setup: _Setup) -> tuple[float, float]:
    data = encode_state(setup.memory.episodes)
    restored = iter([decode_state(data, Episodes) for _ in range(4)])

    def first() -> None:
        next(restored).ranking(_MODEL, setup.questions[0].tobytes()).strongest(MOST_RETURNED)

    return percentiles(first, 0.0)


def _measured(search: Search, setup: _Setup) -> tuple[float, float]:
    questions = (setup.questions[number % len(setup.questions)] for number in count())
    return percentiles(lambda: search(next(questions)), SECONDS_PER_CASE)


def _row(size: int, width: int, case: str, times: tuple[float, float], ours: tuple[float, float] | None = None) -> Row:
    return Row(
        episodes=size,
        width=width,
        case=case,
        p50_ms=round(times[0] / 1e3, 3),
        p99_ms=round(times[1] / 1e3, 3),
        p50_ratio=round(times[0] / ours[0], 1) if ours else None,
    )


def main() -> None:
    """Print the rows as they come."""
    print(
        f"{'episodes':>8} {'width':>5} {'case':30} {'p50 ms':>9} {'p99 ms':>9} {'p50 x':>6}   budget {BUDGET_MS:g} ms"
    )
    rows = []
    for row in run([int(size) for size in sys.argv[1:]] or SIZES):
        rows.append(row)
        ratio = f"{row.p50_ratio:6.1f}" if row.p50_ratio else ""
        print(f"{row.episodes:8} {row.width:5} {row.case:30} {row.p50_ms:9.3f} {row.p99_ms:9.3f} {ratio}", flush=True)
    record(rows)


if __name__ == "__main__":
    main()
