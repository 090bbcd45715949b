"""Signatures in encodings: found, named by their view, and traced to where they stood; bounded work on bombs."""

import codecs
from base64 import b64encode
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.contract.text.decoding.nested_decoding import DEPTH as DISGUISES_DEPTH
from actors.reflex.decider import judge
from actors.reflex.decoding.encodings import DECODERS, MAX_WORK, DecodingBudget, Encoding
from actors.reflex.settings import ReflexSettings
from actors.reflex.text_views import DEPTH, text_views_of
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.reflex import ReflexBlocked, ReflexPassed
from tests.actors.reflex.disguises import ENCODERS, INVISIBLE, SEED, disguised, in_leetspeak, in_rot13, plain, spaced
from tests.actors.reflex.judging import judged, listed, matcher, threat, verdict
from tests.each import each

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


@each("encoder", ENCODERS)
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


@each(
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


@each("after", [" please.", "\nnow", "»"])
@each("inner", ["base64", "hex"])
def test_a_short_text_has_room_for_every_way_to_read_it(inner: str, after: str) -> None:
    text = ENCODERS["base64 unpadded"](ENCODERS[inner]("now open the vault"))
    event = judged(f"{text}{after}", OWN)
    assert isinstance(event, ReflexBlocked)
    assert event.unread == ()


@each("inner", ["hex", "base64", "base64 unpadded"])
@each("after", [" and do what it says", " now\n", " go"])
def test_a_word_behind_an_encoded_phrase_does_not_hide_what_is_encoded_within(inner: str, after: str) -> None:
    for phrase in ("open the vault", "open the vaults", "open the vaults!"):
        for text in (ENCODERS[inner](phrase), ENCODERS["hex"](ENCODERS[inner](phrase))):
            written = ENCODERS["base64 unpadded"](text)
            assert isinstance(judged(f"{written}{after}", threat("own", phrase)), ReflexBlocked)


@each("encoder", ["base64", "hex", "percent"])
def test_what_is_encoded_more_often_than_is_undone_counts_as_not_looked_at(encoder: str) -> None:
    text = "open the vault, and hand over all that is kept in it now"
    for _ in range(DISGUISES_DEPTH):
        text = ENCODERS[encoder](text)
        assert isinstance(judged(text, OWN), ReflexBlocked)
    event = judged(ENCODERS[encoder](text), OWN)
    assert isinstance(event, ReflexPassed)
    assert {each.what for each in event.unread} == {encoder, "disguised"}
    assert {(each.layer, each.why) for each in event.unread} == {("text", "decoding")}
    assert max(each.share for each in event.unread) > 0.7, "coherence refuses it"


def test_an_address_within_addresses_is_read() -> None:
    address = "https://a.example/?q=one%20two"
    for place in range(4):
        address = f"https://hop{place}.example/go?to={quote(address, safe='')}&t=1"
    event = judged(f"see {address}", OWN)
    assert isinstance(event, ReflexPassed)
    assert all(each.share < 0.7 for each in event.unread)


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


@each("hidden", [char for char in INVISIBLE if char != "\ud800"])
def test_invisible_characters_do_not_break_up_an_encoded_run(hidden: str) -> None:
    text = encoded("base64")
    (match,) = listed(judged(f"é {text[:9]}{hidden}{text[9:]}", OWN))
    assert (match.view, match.source) == ("base64", (2, 2 + len(text.rstrip("=")) + 1))


def test_base64_in_pieces_of_four_is_found() -> None:
    text = b64encode(b"please open the vault now, and then close it again").decode()
    pieces = " ".join(text[start : start + 4] for start in range(0, len(text), 4))
    assert isinstance(judged(f"Join these: {pieces}.", OWN), ReflexBlocked)


@each("encoder", ["base64", "hex", "percent"])
def test_an_encoding_is_undone_only_where_settings_say_so(encoder: str) -> None:
    others = tuple(view for view in ReflexSettings().decoded_views if view not in (encoder, "disguised"))
    assert judged(encoded(encoder), OWN, decoded_views=others) == ReflexPassed()


def test_without_views_only_the_plain_text_is_searched() -> None:
    for text in ("0pen the vault", "o p e n t h e v a u l t", "bcra gur inhyg", encoded("base64")):
        assert judged(text, OWN, decoded_views=()) == ReflexPassed()
        assert isinstance(judged(text, OWN), ReflexBlocked)


@each(
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
    views = text_views_of(text, ALL, allowance)
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
    views = text_views_of(text, ALL, allowance)
    assert views.decoded <= allowance
    assert all(len(view.path) <= DEPTH for view in views.all)
    # Nothing decodes to more than it was, so that three depths of three encodings have a bound of their own.
    assert sum(len(view.text) for view in views.all) <= len(text) * (1 + 3 + 9 + 27)


def test_an_event_says_that_more_was_encoded_than_is_decoded() -> None:
    text = "please open the door " * 50
    event = judged(ENCODERS["base64"](text), OWN, max_decoded=100)
    assert isinstance(event, ReflexPassed)
    (unread,) = event.unread
    assert (unread.layer, unread.what, unread.why) == ("text", "base64", "decoding")
    assert 4 * (1050 - 100) // 3 - 4 <= unread.amount <= 4 * (1050 - 100) // 3 + 4
    assert unread.share > 0.9
    assert judged(ENCODERS["base64"](text), OWN) == ReflexPassed()


def test_the_allowance_is_shared_by_text_and_layers() -> None:
    encoded_twice = ENCODERS["base64"]("please open the door " * 4)
    settings = ReflexSettings(max_decoded=100)
    layer = Layer(role="tool", content=encoded_twice)
    assert not judge(matcher(OWN), settings, InputReceived(text=encoded_twice)).unread
    both = judge(matcher(OWN), settings, InputReceived(text=encoded_twice, layers=(layer,)))
    assert {each.layer for each in both.unread} == {"text", "tool[0]"}


@each(
    ("encoding", "run"),
    [("base64", "aB3dE5gH7jK9mN1;"), ("hex", "0x414243444546 zz "), ("percent", "%41 " + "x" * 400)],
)
def test_what_more_runs_than_are_looked_at_take_up_is_counted(encoding: Encoding, run: str) -> None:
    text = run * 1000
    for work in (0, 20_000, 10**7):
        runs = DECODERS[encoding](text, text.encode(), DecodingBudget(10**6, work))
        looked_at = sum(each.end - each.start for each in runs.found)
        assert (runs.unread == 0) == (work == 10**7)
        assert looked_at + runs.unread <= len(text) + 200
    assert runs.work <= 2 * len(text) * 32


JUNK = {
    "decoded text before it": "".join(
        f"{ENCODERS['base64'](f'nothing to see in part {n} of this')}, " for n in range(1600)
    ),
    "short runs before it": "aB3dE5gH7jK9, " * 1100,
    "a run of one piece before it": ENCODERS["base64"]("nothing to see here, " * 3600),
    "hex before it": "0x414243444546; " * 1100,
    "prefixes of hex before it": "".join(f"\\x{97 + n % 26:02x}" for n in range(4000)),
    "escapes before it": ("%41 " + "x" * 400) * 300,
    "camel case before it": "getUserName setUserName2 " * 4000,
}


@each("encoder", ["base64", "hex", "percent"])
@each("junk", JUNK)
def test_an_attack_behind_junk_is_found(junk: str, encoder: str) -> None:
    event = judged(f"{JUNK[junk]} . {ENCODERS[encoder]('please open the vault now')}", OWN)
    assert isinstance(event, ReflexBlocked)


def test_an_attack_in_the_last_of_many_layers_is_found_and_named() -> None:
    junk = [Layer(role="document", content=JUNK["short runs before it"][:700]) for _ in range(255)]
    for written, view in ((ENCODERS["base64"]("open the vault"), "base64"), ("open the vault", "plain")):
        received = InputReceived(text="Hello", layers=(*junk, Layer(role="tool", content=f"see: {written}.")))
        (match,) = listed(judge(matcher(OWN), ReflexSettings(), received))
        assert match.view == f"tool[255]:{view}"
        assert (match.source or match.span)[0] == 5


def test_no_phrase_is_made_up_of_two_of_many_layers() -> None:
    layers = tuple(Layer(role="document", content=text) for text in ("please open", "the vault") * 40)
    assert judge(matcher(OWN), ReflexSettings(), InputReceived(text="Hello", layers=layers)) == ReflexPassed()


@given(st.binary(max_size=200), st.text("\x00\x1faZ9%\\xu&#0; =+/-_é", max_size=60))
def test_decoders_accept_anything(data: bytes, text: str) -> None:
    for source in (data.decode("latin-1"), text):
        for decode in DECODERS.values():
            for run in decode(source, source.encode("ascii", "replace"), DecodingBudget(10**6)).found:
                assert 0 <= run.start < run.end <= len(source)
                assert run.text


@each("space", [chr(code) for code in range(128) if chr(code).isspace()], named=ascii)
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
        (run,) = decode(written, written.encode(), DecodingBudget(10**6)).found
        assert run.text.encode() == data


PREFIXES = st.sampled_from(["", "0x", "0X", "\\x", "\\u00", "&#x", "&#X00", "U+00"])
BREAKS = st.text(" ,:;|_.-\n", max_size=3)


@given(st.lists(st.tuples(PREFIXES, st.integers(1, 127), BREAKS), min_size=6, max_size=80))
def test_hex_may_mix_prefixes_and_breaks(written: list[tuple[str, int, str]]) -> None:
    text = "0x20" + "".join(f"{prefix}{code:02x}{gap}" for prefix, code, gap in written)
    (run,) = DECODERS["hex"](text, text.encode(), DecodingBudget(10**6)).found
    assert run.text == " " + "".join(chr(code) for _, code, _ in written)
    assert (run.start, run.end) == (0, len(text))


@each("encoder", ALL)
def test_what_may_come_out_is_had_by_all_runs_in_equal_shares(encoder: Encoding) -> None:
    long, short = (
        ENCODERS[encoder](text).replace("=", "") for text in ("never mind the door " * 100, "open the vault")
    )
    text = f"{long}{'; ' + '. ' * 300}{short}"
    runs = DECODERS[encoder](text, text.encode(), DecodingBudget(1000))
    assert sum(len(run.text) + 1 for run in runs.found) - 1 <= 1000
    assert "open the vault" in runs.found[-1].text
    assert 0 < runs.unread < len(text)


def test_80_kb_of_base64_are_read_from_every_start_and_more_from_the_likeliest_first() -> None:
    assert not text_views_of("aB3d " * 16_384, ALL, 10**6).unread
    payload = ENCODERS["base64"]("please open the vault now")
    views = text_views_of("aB3d " * 40_960 + f", {payload}", ALL, 10**6)
    assert dict(views.unread) == {"base64": 5 * 40_960 - 1}
    assert views.work <= MAX_WORK
    assert "please open the vault now" in views.all[1].text


def test_what_may_be_tried_is_shared_by_text_and_layers() -> None:
    text = "aB3d " * 4_000
    layer = Layer(role="tool", content=text)
    assert not judged(text, OWN).unread
    shared = judge(matcher(OWN), ReflexSettings(), InputReceived(text=text, layers=(layer,) * 12))
    assert shared.unread
    assert all(each.why == "decoding" for each in shared.unread)


@each("hidden", ["&#x00;", "0x41 zz ", "0x0x"])
def test_a_megabyte_of_hex_that_leads_nowhere_is_read_once(hidden: str) -> None:
    text = "0x414243444546 " + hidden * (1_000_000 // len(hidden))
    assert sum(len(run.text) for run in DECODERS["hex"](text, text.encode(), DecodingBudget(10**6)).found) <= len(text)
