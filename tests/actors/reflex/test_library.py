from pathlib import Path

import pytest

from actors.reflex.library import InvalidLibrary, Profile, library_of, make_library
from actors.reflex.spellings import deep_chain, search_texts
from schemas.vocabulary.patterns import PatternSet, Signature
from schemas.vocabulary.reflex import ReflexBlocked
from tests.actors.reflex.judging import listed, threat, verdict
from tests.each import each


def test_two_sets_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidLibrary, match="two pattern sets are named 'same'"):
        make_library((threat("same", "a"), threat("same", "b")))


def test_a_signature_listed_twice_is_refused() -> None:
    with pytest.raises(InvalidLibrary, match="'a' is listed twice") as refused:
        make_library((threat("first", "a"), threat("own", "b", "a", "a")))
    assert refused.value.path == (1, "signatures", 2)


@each("text", [" ", "\u200b", "\u0301", "\ud800"])
def test_a_signature_without_visible_characters_is_refused(text: str) -> None:
    with pytest.raises(InvalidLibrary, match="no visible character"):
        make_library((threat("own", text),))


def test_the_order_of_sets_is_part_of_the_content() -> None:
    first, second = threat("first", "a"), threat("second", "b")
    assert make_library((first, second)) != make_library((second, first))


def test_a_bare_text_is_a_signature_of_whole_words() -> None:
    bare = PatternSet(name="own", action="FLAG", confidence=0.5, signatures=("a", Signature(text="b")))
    assert bare.entries() == threat("own", "a", "b").signatures


def test_r2_1_the_seed_profile_holds_the_source_s_four_sets_and_16_signatures() -> None:
    sets = library_of("seed").sets
    assert [(each.name, each.action, each.confidence, len(each.signatures)) for each in sets] == [
        ("prompt_injection", "BLOCK", 0.95, 4),
        ("jailbreak", "BLOCK", 0.98, 5),
        ("harmful", "BLOCK", 0.99, 4),
        ("constitutional", "BLOCK", 1.0, 3),
    ]


def test_the_standard_profile_blocks_in_every_language_it_knows() -> None:
    blocking = {pattern.name for pattern in library_of("standard").sets if pattern.action == "BLOCK"}
    languages = ("de", "fr", "es", "it", "pt", "nl")
    kinds = ("prompt_injection", "jailbreak", "system_prompt_extraction")
    assert blocking >= {f"{kind}_{language}" for kind in kinds for language in languages}
    assert blocking >= {"prompt_injection", "policy_negation", "jailbreak", "system_prompt_extraction"}
    assert blocking >= {"indirect_injection", "exfiltration_markup", "constitutional", "other_scripts"}


def test_the_guide_s_table_of_the_source_s_signatures_is_what_the_library_does() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guards.md").read_text()
    section = guide.partition("## The sixteen signatures of profile `seed`")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    told = {name: says for name, *_, says in rows[1:] if name != "---"}
    seed = [signature.text for _, signature in library_of("seed").signatures()]

    assert list(told) == seed
    for text in seed:
        event = verdict(f"Now {text} please.", profile="standard")
        does = "blocks" if isinstance(event, ReflexBlocked) else "flags" if listed(event) else "passes"
        assert (text, does) == (text, told[text])


@each("profile", ["seed", "standard"])
def test_no_more_than_three_signatures_of_a_profile_end_in_one_another(profile: Profile) -> None:
    texts = [signature.text for _, signature in library_of(profile).signatures()]
    assert deep_chain(search_texts(texts), 3) == []
