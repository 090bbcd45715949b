"""Signatures in encodings: found, named by their view, and traced to where they stood; bounded work on bombs."""

import codecs
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.reflex.decider import judge
from actors.reflex.encodings import DECODERS, MAX_RUNS, MAX_TRIES, Encoding, Room
from actors.reflex.settings import ReflexSettings
from actors.reflex.views import DEPTH, views_of
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from tests.actors.reflex.disguises import ENCODERS, INVISIBLE, SEED, disguised, in_leetspeak, in_rot13, plain, spaced
from tests.actors.reflex.judging import judged, listed, matcher, threat, verdict

ALL = tuple(DECODERS)
OWN = threat("own", "open the vault")
BEFORE = st.sampled_from(["", "Decode this: ", "payload = ", "iPhone 12 says ", "«", "run it\n", "the code is "])
AFTER = st.sampled_from(["", " please.", ", thanks", "»", "\nnow", " and do what it says"])


def encoded(name: str, text: str = "please open the vault now") -> str:
    return ENCODERS[name](text)


def view_name(encoder: str) -> str:
    return encoder.split(" ")[0]


@settings(deadline=None, max_examples=200)
@given(
    st.one_of(disguised(), in_leetspeak(), in_rot13, spaced, plain),
    st.lists(st.sampled_from(sorted(ENCODERS)), min_size=1, max_size=DEPTH),
    BEFORE,
    AFTER,
)
def test_any_composition_of_disguises_and_encodings_is_found(
    case: tuple[str, str], encoders: list[str], before: str, after: str
) -> None:
    signature, text = case
    for encoder in encoders:
        text = ENCODERS[encoder](text)
    profile = "seed" if signature in SEED else "standard"
    event = verdict(before + text + after, profile=profile)
    assert isinstance(event, ReflexBlocked)
    assert signature in {match.signature for match in event.matches} or len(event.matches) == 32


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_hit_names_its_view_and_where_it_was_encoded(encoder: str) -> None:
    before = "Decode this: "
    text = encoded(encoder)
    (match,) = listed(judged(f"{before}{text}!", OWN))
    assert match.view == view_name(encoder)
    assert match.source is not None
    start, end = match.source
    if encoder.startswith("percent"):  # with the words around it
        assert start <= len(before) < len(before) + len(text) <= end
    else:
        assert f"{before}{text}!"[start:end].rstrip("=") == text.rstrip("=")


@pytest.mark.parametrize(
    ("outer", "inner", "view"),
    [
        ("base64", "hex", "base64:hex"),
        ("hex", "base64 unpadded", "hex:base64"),
        ("percent", "base64", "percent:base64"),
        ("base64", "base64", "base64:base64"),
    ],
)
def test_nested_encodings_are_named_outermost_first(outer: str, inner: str, view: str) -> None:
    text = ENCODERS[outer](encoded(inner))
    (match,) = listed(judged(text, OWN))
    assert match.view == view
    assert match.source is not None
    assert match.source[0] == 0


def test_a_third_encoding_is_not_undone() -> None:
    text = "open the vault"
    for _ in range(DEPTH + 1):
        text = ENCODERS["base64"](text)
    assert judged(text, OWN) == ReflexPassed()


def test_readings_of_a_decoded_text_are_named_after_it() -> None:
    (match,) = listed(judged(ENCODERS["base64"](codecs.encode("open the vault", "rot13")), OWN))
    assert (match.view, match.span) == ("base64:rot13", (0, 14))
    (match,) = listed(judged(ENCODERS["hex"]("0p3n the vault"), OWN))
    assert match.view == "hex:leetspeak"


def test_a_hit_in_a_layer_s_encoding_names_the_layer() -> None:
    layer = Layer(role="document", content=f"see {ENCODERS['base64']('hack into')}")
    (match,) = listed(verdict("Summarise this.", layer))
    assert (match.view, match.source) == ("document[0]:base64", (4, 4 + 12))


def test_the_span_is_in_the_decoded_text() -> None:
    (match,) = listed(judged(encoded("base64"), OWN))
    assert match.span == (7, 21)


def test_what_is_spread_over_several_runs_is_read_together() -> None:
    first, second = (ENCODERS["base64"](part) for part in ("please open the", "vault quickly"))
    text = f"a: {first}, b: {second}."
    (match,) = listed(judged(text, OWN))
    assert match.view == "base64"
    assert match.source == (3, len(text.rstrip("=.")))


def test_a_signature_is_reported_in_the_first_view_that_shows_it() -> None:
    (match,) = listed(judged(f"open the vault, {encoded('base64')}", OWN))
    assert match.view == "plain"


@pytest.mark.parametrize("hidden", [char for char in INVISIBLE if char != "\ud800"])
def test_invisible_characters_do_not_break_up_an_encoded_run(hidden: str) -> None:
    text = encoded("base64")
    (match,) = listed(judged(f"é {text[:9]}{hidden}{text[9:]}", OWN))
    assert (match.view, match.source) == ("base64", (2, 2 + len(text.rstrip("=")) + 1))


def test_base64_in_pieces_of_four_is_found() -> None:
    text = b64encode(b"please open the vault now, and then close it again").decode()
    pieces = " ".join(text[start : start + 4] for start in range(0, len(text), 4))
    assert isinstance(judged(f"Join these: {pieces}.", OWN), ReflexBlocked)


@pytest.mark.parametrize("encoder", ["base64", "hex", "percent"])
def test_an_encoding_is_undone_only_where_settings_say_so(encoder: str) -> None:
    others = tuple(view for view in ReflexSettings().decoded_views if view != encoder)
    assert judged(encoded(encoder), OWN, decoded_views=others) == ReflexPassed()


def test_without_views_only_the_plain_text_is_searched() -> None:
    for text in ("0pen the vault", "o p e n t h e v a u l t", "bcra gur inhyg", encoded("base64")):
        assert judged(text, OWN, decoded_views=()) == ReflexPassed()
        assert isinstance(judged(text, OWN), ReflexBlocked)


@pytest.mark.parametrize(
    "text",
    [
        "The iPhone 12 and the MacBook2020 cost 2000USD in Q4FY23",
        "id 550e8400-e29b-41d4-a716-446655440000 of 2024-01-02 03:04:05",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "printf('%d of %s', n, name) # 100% of %zz",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "GET /search?q=red%20shoes&page=2 HTTP/1.1",
        "getUserNameFromSessionToken2(HTTPServerRequest request)",
        "0x0, 0x1, \\x00 and U+0041",
    ],
)
def test_encoded_looking_ordinary_text_raises_no_alarm(text: str) -> None:
    assert verdict(text, profile="standard") == ReflexPassed()


@given(st.text(st.characters(), max_size=400), st.integers(0, 300))
def test_no_more_is_decoded_than_allowed(text: str, allowance: int) -> None:
    views = views_of(text, ALL, allowance)
    assert sum(len(view.text) for view in views.all[1:]) == views.decoded <= allowance


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(sorted(ENCODERS)), min_size=1, max_size=6),
    st.integers(1, 2000),
    st.integers(0, 5000),
)
def test_a_bomb_of_nested_encodings_is_cut_at_the_allowance(encoders: list[str], size: int, allowance: int) -> None:
    text = "open the vault, " * size
    for encoder in encoders:
        text = ENCODERS[encoder](text)[:200_000]
    views = views_of(text, ALL, allowance)
    assert views.decoded <= allowance
    assert all(len(view.path) <= DEPTH for view in views.all)
    # Nothing decodes to more than it was, so that two depths of three encodings have a bound of their own.
    assert sum(len(view.text) for view in views.all) <= len(text) * (1 + 3 + 9)


def test_an_event_says_that_more_was_encoded_than_is_decoded() -> None:
    text = "please open the door " * 50
    event = judged(ENCODERS["base64"](text), OWN, max_decoded=100)
    assert event == ReflexPassed(cut=True)
    assert judged(ENCODERS["base64"](text), OWN) == ReflexPassed(cut=False)


def test_the_allowance_is_shared_by_text_and_layers() -> None:
    encoded_twice = ENCODERS["base64"]("please open the door " * 4)
    settings = ReflexSettings(max_decoded=100)
    layer = Layer(role="tool", content=encoded_twice)
    assert not judge(matcher(OWN), settings, InputReceived(text=encoded_twice)).cut
    assert judge(matcher(OWN), settings, InputReceived(text=encoded_twice, layers=(layer,))).cut


@pytest.mark.parametrize("run", ["aB3dE5gH7jK9mN1;", "0x414243444546;", "%41 " + "x" * 400])
def test_more_runs_than_are_looked_at_are_cut(run: str) -> None:
    views = views_of(run * (MAX_RUNS + 50), ALL, 10**6)
    assert views.cut


@given(st.binary(max_size=200), st.text("\x00\x1faZ9%\\xu&#0; =+/-_é", max_size=60))
def test_decoders_accept_anything(data: bytes, text: str) -> None:
    for source in (data.decode("latin-1"), text):
        for decode in DECODERS.values():
            for run in decode(source, source.encode("ascii", "replace"), Room(10**6)).found:
                assert 0 <= run.start < run.end <= len(source)
                assert run.text


@pytest.mark.parametrize("space", [chr(code) for code in range(128) if chr(code).isspace()], ids=ascii)
def test_any_white_space_may_part_the_pieces_of_base64(space: str) -> None:
    written = encoded("base64")
    event = judged(f"{written[:18]}{space}{written[18:]}", OWN)
    assert [match.view for match in listed(event)] == ["base64"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=60))
def test_whatever_is_encoded_comes_out_again(text: str) -> None:
    data = text.encode()
    for encoder in ("hex", "hex spaced", "percent"):
        written = ENCODERS[encoder](text)
        decode = DECODERS["percent" if encoder == "percent" else "hex"]
        (run,) = decode(written, written.encode(), Room(10**6)).found
        assert run.text.encode() == data


PREFIXES = st.sampled_from(["", "0x", "0X", "\\x", "\\u00", "&#x", "&#X00", "U+00"])
BREAKS = st.text(" ,:;|_.-\n", max_size=3)


@given(st.lists(st.tuples(PREFIXES, st.integers(1, 127), BREAKS), min_size=6, max_size=80))
def test_hex_may_mix_prefixes_and_breaks(written: list[tuple[str, int, str]]) -> None:
    text = "0x20" + "".join(f"{prefix}{code:02x}{gap}" for prefix, code, gap in written)
    (run,) = DECODERS["hex"](text, text.encode(), Room(10**6)).found
    assert run.text == " " + "".join(chr(code) for _, code, _ in written)
    assert (run.start, run.end) == (0, len(text))


@pytest.mark.parametrize("encoder", ALL)
def test_decoding_ends_with_the_run_that_goes_beyond_what_is_allowed(encoder: Encoding) -> None:
    text = ("x" * 400 + ENCODERS[encoder]("open the vault") + ". ") * 100
    text = text.replace("==", "")
    found = DECODERS[encoder](text, text.encode(), Room(1000)).found
    assert sum(len(run.text) + 1 for run in found[:-1]) <= 1000 < sum(len(run.text) + 1 for run in found) < 2000


def test_100_kb_of_base64_are_read_from_every_start_and_more_from_the_likeliest_first() -> None:
    assert not views_of("aB3d " * 20_480, ALL, 10**6).cut
    payload = ENCODERS["base64"]("please open the vault now")
    views = views_of("aB3d " * 200_000 + f", {payload}", ALL, 10**6)
    assert views.cut
    assert 0 < views.tries <= MAX_TRIES
    assert "please open the vault now" in views.all[1].text


def test_what_may_be_tried_is_shared_by_text_and_layers() -> None:
    text = "aB3d " * 20_000
    layer = Layer(role="tool", content=text)
    received = InputReceived(text=text, layers=(layer, layer))
    assert not judged(text, OWN).cut
    assert judge(matcher(OWN), ReflexSettings(), received).cut


@pytest.mark.parametrize("hidden", ["&#x00;", "0x41 zz ", "0x0x"])
def test_a_megabyte_of_hex_that_leads_nowhere_is_read_once(hidden: str) -> None:
    text = "0x414243444546 " + hidden * (1_000_000 // len(hidden))
    assert sum(len(run.text) for run in DECODERS["hex"](text, text.encode(), Room(10**6)).found) <= len(text)
