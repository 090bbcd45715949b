"""Reflex: which attacks the standard profile finds, and where it raises false alarms, on a labelled set of prompts.

Run it with ``python -m bench.quality.reflex_detection PROMPTS.jsonl [PROFILE]``; each line has ``text``, ``label``
(attack, benign or hard_benign), ``category`` and ``source``. It prints recall by category, false alarms by source and
pattern set, and the views (the text itself, or with encodings undone) in which matches were found. ``--signatures``
adds the signatures that raise false alarms.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, cast

import msgspec

from actors.reflex.decider import judge
from actors.reflex.library import Profile, library_of
from actors.reflex.matcher import compile_library
from actors.reflex.settings import ReflexSettings
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import Match, ReflexBlocked

Label = Literal["attack", "benign", "hard_benign"]
"""What a text is; ``hard_benign``: harmless, but in the words of attacks."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A labelled text."""

    text: str
    label: Label
    category: str
    source: str


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt, whether it was blocked, and every match in it."""

    prompt: Prompt
    blocked: bool
    matches: tuple[Match, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A group of prompts: how many there are, how many are blocked, and how many only flagged."""

    group: str
    prompts: int
    blocked: int
    flagged: int

    def line(self) -> str:
        """Return the row as a line of a table."""
        share = 100 * self.blocked / self.prompts
        flagged = 100 * self.flagged / self.prompts
        return f"{self.group:<58}{self.prompts:>7}{self.blocked:>9}{share:>8.2f}%{flagged:>8.2f}%"


def read(path: Path) -> list[Prompt]:
    """Read prompts from JSON lines."""
    return msgspec.json.Decoder(Prompt).decode_lines(path.read_bytes())


def judge_all(prompts: Iterable[Prompt], profile: Profile = "standard") -> list[Judged]:
    """Judge every prompt by itself, under a profile with default settings."""
    matcher, settings = compile_library(library_of(profile)), ReflexSettings(profile=profile, max_matches=1000)
    found = []
    for prompt in prompts:
        verdict = judge(matcher, settings, InputReceived(text=prompt.text))
        blocked = isinstance(verdict, ReflexBlocked)
        matches = verdict.matches if isinstance(verdict, ReflexBlocked) else verdict.flags
        found.append(Judged(prompt=prompt, blocked=blocked, matches=matches))
    return found


def blocking(profile: Profile = "standard") -> Callable[[str], bool]:
    """Return what says of a text whether it is blocked, under a profile with default settings."""
    matcher, settings = compile_library(library_of(profile)), ReflexSettings(profile=profile)
    return lambda text: isinstance(judge(matcher, settings, InputReceived(text=text)), ReflexBlocked)


def by_group(judged: Iterable[Judged], *fields: str) -> list[Row]:
    """Return a row for each combination of the named fields, sorted."""
    groups: defaultdict[str, list[Judged]] = defaultdict(list)
    for each in judged:
        groups["/".join(getattr(each.prompt, field) for field in fields)].append(each)
    return [
        Row(
            group=group,
            prompts=len(members),
            blocked=sum(member.blocked for member in members),
            flagged=sum(bool(member.matches) and not member.blocked for member in members),
        )
        for group, members in sorted(groups.items())
    ]


def by_set(judged: Iterable[Judged]) -> dict[str, Counter[str]]:
    """Return how many prompts of each label every pattern set matches."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in judged:
        for pattern in {f"{match.pattern} ({match.action})" for match in each.matches}:
            found[pattern][each.prompt.label] += 1
    return dict(found)


def false_alarms(judged: Iterable[Judged]) -> Counter[tuple[str, str, str]]:
    """Return how many harmless prompts each signature matches, by action, set and signature."""
    found: Counter[tuple[str, str, str]] = Counter()
    for each in judged:
        if each.prompt.label != "attack":
            found.update({(match.action, match.pattern, match.signature) for match in each.matches})
    return found


def _report(judged: Sequence[Judged]) -> Iterator[str]:
    yield f"{'':<58}{'prompts':>7}{'blocked':>9}{'':>9}{'flagged':>9}"
    attacks = [each for each in judged if each.prompt.label == "attack"]
    harmless = [each for each in judged if each.prompt.label != "attack"]
    for title, rows in (
        ("recall by category", by_group(attacks, "category")),
        ("recall by category and source", by_group(attacks, "category", "source")),
        ("false alarms by label", by_group(harmless, "label")),
        ("false alarms by category and source", by_group(harmless, "label", "category", "source")),
    ):
        yield f"\n{title}"
        yield from (row.line() for row in rows)
    yield "\nprompts that each set matches: attack, benign, hard_benign"
    for name, labels in sorted(by_set(judged).items()):
        yield f"{name:<58}{labels['attack']:>7}{labels['benign']:>9}{labels['hard_benign']:>9}"
    yield "\nmatches by view"
    views = Counter((each.prompt.label, match.view) for each in judged for match in each.matches)
    yield from (f"{label:<12} {view:<45}{count:>7}" for (label, view), count in views.most_common(30))


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    names = [argument for argument in arguments if not argument.startswith("--")]
    if not names:
        sys.exit("usage: python -m bench.quality.reflex_detection PROMPTS.jsonl [standard|seed] [--signatures]")
    profile = cast(Profile, names[1]) if len(names) > 1 else "standard"
    judged = judge_all(read(Path(names[0])), profile)
    print("\n".join(_report(judged)))
    if "--signatures" in arguments:
        print("\nharmless prompts that each signature matches")
        for (action, pattern, signature), count in false_alarms(judged).most_common():
            print(f"{count:>5}  {action:<6} {pattern:<40} {signature}")


if __name__ == "__main__":
    main(sys.argv[1:])
