"""Tables in a terminal: nothing is cut, no word is broken, and what has no room stands below what has."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from deploy.cli.rendering.layout.table_fitting import fitted_table
from deploy.cli.rendering.layout.terminal import print_hanging
from deploy.health.findings import Finding, Verdict
from schemas.export import subjects_rows
from tests.each import each

HEALTH = [
    {"check": "broker", "verdict": "ok", "detail": "nats-server 2.15.1 at nats://127.0.0.1:41451", "remedy": ""},
    {
        "check": "durability",
        "verdict": "warn",
        "detail": "an acknowledged append survives a crash of the broker, but a power cut may lose the last 1 s",
        "remedy": "start with `--sync always`",
    },
    {
        "check": "ledger",
        "verdict": "fail",
        "detail": ".neuraxis/ledger.db is 12,004 events behind the stream's 40,113",
        "remedy": "see why the process `ledger` does not write: its own message is in the log of `neuraxis up`",
    },
]
SUBJECTS = [
    {
        "subject": row.subject,
        "owner": row.owner,
        "scope": row.scope.value,
        "version": str(row.version),
        "severity": row.severity.value if row.severity else "",
        "meaning": row.meaning,
    }
    for row in subjects_rows()
]


def shown(rows: Sequence[Mapping[str, str]], width: int) -> str:
    console = Console(width=width, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(fitted_table(list(rows[0]), rows, width))
    return captured.get()


@each("width", [60, 80, 100, 120, 200])
@each("rows", [HEALTH, SUBJECTS], named=["doctor", "subjects"])
def test_no_line_is_too_long_and_no_word_is_cut(rows: Sequence[Mapping[str, str]], width: int) -> None:
    told = shown(rows, width)
    assert all(len(line) <= width for line in told.splitlines())
    assert "…" not in told
    words = set(told.replace(",", " ").split())
    for row in rows:
        for cell in row.values():
            assert set(cell.replace(",", " ").split()) <= words


def test_a_table_that_fits_has_every_column() -> None:
    head, *lines = shown(HEALTH, 400).splitlines()
    assert head.split() == ["check", "verdict", "detail", "remedy"]
    assert len(lines) == len(HEALTH)


def test_what_has_no_room_stands_below_with_its_name() -> None:
    lines = [line.rstrip() for line in shown(HEALTH, 80).splitlines()]
    assert lines[0].split() == ["check", "verdict", "detail"]
    assert "                     remedy: start with `--sync always`" in lines
    assert lines[1] == "broker      ok       nats-server 2.15.1 at nats://127.0.0.1:41451"


def test_a_column_without_any_value_takes_no_room() -> None:
    told = shown([{**row, "remedy": ""} for row in HEALTH], 80)
    assert "remedy" not in told


def test_the_rows_of_a_command_are_findings_too() -> None:
    assert set(Finding.__struct_fields__) == set(HEALTH[0])
    assert {row["verdict"] for row in HEALTH} <= {verdict.value for verdict in Verdict}


def test_a_long_line_goes_on_indented_and_a_break_in_it_is_kept() -> None:
    console = Console(width=30)
    with console.capture() as captured:
        print_hanging(console, Text("\none two three four five six seven eight\nnine"), 4)
    assert [line.rstrip() for line in captured.get().split("\n")] == [
        "",
        "one two three four five",
        "    six seven eight",
        "nine",
        "",
    ]
