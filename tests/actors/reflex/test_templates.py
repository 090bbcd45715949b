import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.reflex.templates import TemplateFile, TemplateSet, expand, expand_template

WORDS = {"verb": ("ignore", "forget"), "all": ("", "all"), "thing": ("rules",)}


def test_a_template_stands_for_every_combination_in_order() -> None:
    assert expand_template("{verb} {all} {thing}", WORDS) == [
        "ignore rules",
        "ignore all rules",
        "forget rules",
        "forget all rules",
    ]


def test_a_template_without_places_stands_for_itself() -> None:
    assert expand_template("do anything  now", WORDS) == ["do anything now"]


def test_a_text_that_two_templates_stand_for_is_listed_once() -> None:
    both = TemplateSet(name="own", action="BLOCK", confidence=0.9, templates=("{verb} rules", "ignore {thing}"))
    (pattern,) = expand(TemplateFile(words=WORDS, sets=(both,)))
    assert pattern.signatures == ("ignore rules", "forget rules")


def test_a_set_may_opt_out_of_word_boundaries() -> None:
    markup = TemplateSet(name="own", action="FLAG", confidence=0.9, templates=("<|end|>",), whole_words=False)
    (pattern,) = expand(TemplateFile(words={}, sets=(markup,)))
    assert [signature.whole_words for signature in pattern.entries()] == [False]


def test_a_name_that_is_not_listed_is_refused() -> None:
    with pytest.raises(KeyError, match="noun"):
        expand_template("{verb} {noun}", WORDS)


@given(st.lists(st.sampled_from(sorted(WORDS)), max_size=5))
def test_the_number_of_texts_is_the_product_of_the_choices(places: list[str]) -> None:
    template = " ".join(f"{{{place}}}" for place in places)
    count = 1
    for place in places:
        count *= len(WORDS[place])
    assert len(expand_template(template, WORDS)) == count
