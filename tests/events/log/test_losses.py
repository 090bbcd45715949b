"""What is known of a log's recorded losses, and which part of it is read whole for them."""

import msgspec

from events.losses import Losses
from schemas.vocabulary.ledger import LossRecorded
from tests.each import each
from tests.events.ledger.messages import stored


def losses(*lost: tuple[int, int]) -> Losses:
    found = Losses()
    for number, (first, last) in enumerate(lost):
        event = LossRecorded(first_seq=first, through_seq=last, known_by="stream", given_again=False)
        record = stored(10_000 + number, event, exchange="", agent="", session="")
        assert found.note(msgspec.structs.replace(record, seq=10_000 + number))
    return found


@each(
    ("lost", "after", "upto", "whole"),
    [
        ([], 0, 5_000, ()),
        ([(50, 50)], 0, 90, ((0, 90),)),
        ([(50, 50)], 60, 90, ()),
        ([(50, 50)], 0, 40, ()),
        ([(50, 50), (120, 129)], 0, 5_000, ((49, 129),)),
        ([(120, 129), (50, 50)], 0, 5_000, ((49, 129),)),
        ([(50, 50), (150, 150), (149, 149), (4_000, 4_000)], 0, 5_000, ((49, 50), (148, 150), (3_999, 4_000))),
        ([(50, 80)], 60, 5_000, ((60, 80),)),
    ],
)
def test_a_long_log_is_read_whole_from_gap_to_gap_alone(
    lost: list[tuple[int, int]], after: int, upto: int, whole: tuple[tuple[int, int], ...]
) -> None:
    assert losses(*lost).ranges_with_gaps(after, upto, 100) == whole
