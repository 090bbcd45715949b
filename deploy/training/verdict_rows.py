"""Training rows from a log: inputs that people have judged as harmful or harmless."""

from deploy.training.labelled_corpus import Row
from deploy.training.labelled_files import Label
from events.decoding import Recorded, decode
from events.log import Seal
from events.replay.sources import Source
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn

SOURCE = "verdicts"
"""The source of these rows, so that all of them are held out together."""

CATEGORY = "verdict"


async def rows_of_verdicts(source: Source) -> tuple[list[Row], int]:
    """Return a row for each precedent in force, of all agents, in the order of recording; and how many are left out.

    Harmful ones are attacks; harmless ones are hard negatives, since a person had to decide. Left out are those whose
    words are sealed, forgotten or redacted. Those that this release cannot read are noted in ``source.unread``.

    Raises:
        LogError: the log cannot be read.
    """
    filters = [topic_filter(topic_of(kind)) for kind in (PrecedentRecorded, PrecedentWithdrawn)]
    found: dict[tuple[str, str], Row | None] = {}  # None: its words cannot be read
    async for batch in source.history(filters, 0, (await source.info()).last_seq):
        for each in map(decode, batch):
            if not isinstance(each, Recorded):
                source.unread.note(each)
                continue
            match each.message.event:
                case PrecedentRecorded() as event:
                    found.pop((each.message.agent, event.precedent), None)
                    label: Label = "attack" if event.outcome == "harmful" else "hard_benign"
                    is_readable = each.stored.seal in (Seal.AS_STORED, Seal.OPENED)
                    row = Row(event.description, label, CATEGORY, SOURCE) if is_readable else None
                    found[each.message.agent, event.precedent] = row
                case PrecedentWithdrawn(precedent=name):
                    found.pop((each.message.agent, name), None)
    rows = [row for row in found.values() if row is not None]
    return rows, len(found) - len(rows)
