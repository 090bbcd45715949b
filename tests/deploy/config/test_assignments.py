"""Assignments of ``--set``: a key that is set twice, and what a set adds to those of a person."""

from deploy.config.assignments import dotted_keys, repeated_key, without_overridden


def test_a_key_that_is_set_twice_is_found_in_any_case_of_its_section() -> None:
    assert repeated_key(["router.profile=seed", "Router.profile=standard"]) == "router.profile"
    assert repeated_key(["router.profile=seed", "router.PROFILE=standard"]) == "router.profile"
    assert repeated_key(["webhook.receivers.ops.url=x", "webhook.receivers.Ops.url=y"]) == ""


def test_a_process_gets_what_the_set_adds_in_the_place_of_what_a_person_set() -> None:
    given = ("--config", "a.toml", "--set", "llm.backend=auto", "--set", "router.act=false")
    added = ("--set", "llm.backend=openai", "--set", "llm.base_url=http://x/?a=b")
    assert without_overridden((*given, *added)) == (*given[:2], *given[4:], *added)


def test_what_the_set_adds_replaces_a_key_in_any_case() -> None:
    assert without_overridden(("--set", "llm.BACKEND=auto", "--set", "llm.backend=openai")) == (
        "--set",
        "llm.backend=openai",
    )


def test_keys_of_nested_values_are_written_with_dots() -> None:
    assert list(dotted_keys({"llm": {"backend": "openai", "models": {"act": "m"}}})) == [
        "llm.backend",
        "llm.models.act",
    ]
