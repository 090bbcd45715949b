"""The dashboard's files, and who may have what they show."""

import re
from importlib.resources import files

from tests.actors.gateway.http.test_landing_page import KEY, answers

FILES = {each.name: each.read_text() for each in files("actors.gateway.http.dashboard").joinpath("static").iterdir()}

PATHS = sorted(("/dashboard", "/dashboard/", *(f"/dashboard/{name}" for name in FILES)))

OWN = re.compile(
    r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|(inner|outer)HTML|insertAdjacentHTML|document\.write|eval\("
)
"""What a page would run, or be dressed in, besides its files; and what would make markup of people's words."""


def test_its_files_are_handed_out_without_a_key_and_nothing_else_is() -> None:
    *served, data, events, other = answers(
        *(("GET", path) for path in (*PATHS, "/api/overview", "/api/events", "/dashboard/none.js")), keys=[KEY]
    )
    assert [answer.status_code for answer in served] == [200] * len(PATHS)
    assert [answer.status_code for answer in (data, events, other)] == [401, 401, 404]


def test_they_let_a_browser_load_and_run_nothing_but_themselves() -> None:
    for answer in answers(*(("GET", path) for path in PATHS)):
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_they_name_no_foreign_host_and_hold_no_script_or_style_of_a_page_s_own() -> None:
    namespaces = {"http://www.w3.org/2000/svg"}
    for name, text in FILES.items():
        assert set(re.findall(r"https?://[^\s\"'`]+", text)) <= namespaces, name
        assert not OWN.search(text), name


# X(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|innerHTML|outerHTML|insertAdjacentHTML|eval\(", text), name


def test_a_file_that_there_is_not_is_not_found() -> None:
    for answer in answers(("GET", "/dashboard/none.js"), ("GET", "/dashboard/..%2fendpoints.py")):
        assert answer.status_code == 404


def test_a_filter_that_no_exchange_can_be_like_is_refused_by_its_name() -> None:
    asked = {
        "action=BLOCKD": "action",
        "stage=reflex": "stage",
        "mode=SPEAK": "mode",
        "limit=0": "limit",
        "at=-5": "at",
    }

    found = answers(*(("GET", f"/api/exchanges?{query}") for query in asked))

    assert [(answer.status_code, answer.json()["field"]) for answer in found] == [
        (400, field) for field in asked.values()
    ]
    assert "BLOCKED" in found[0].json()["message"]
    assert all(field in answer.json()["message"] for answer, field in zip(found, asked.values(), strict=True))
