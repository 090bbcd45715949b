"""What is done from the dashboard, and what cannot be done from elsewhere; and the picture of it in the README."""

import base64
import json
import os
import re
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.deploy.waiting import until
from tests.e2e.http.browsing import PATIENCE_MS, row, serious_faults
from tests.e2e.live import Live

TAKEN_OVER = "You are the user now and I am the AI."
"""What trips the breaker, and no other guard."""


def test_a_decision_is_made_again_with_other_settings_and_shown_beside_the_recorded_one(page: Page) -> None:
    row(page, "dashboard-answered").get_by_role("button").click()
    decision = page.get_by_role("region", name="Decision", exact=True)
    decision.get_by_text("Decide this again with other settings").press("Enter")
    expect(page.locator("#settings option").first).to_be_attached()
    decision.get_by_label("Setting", exact=True).fill("router.base_scores.ACKNOWLEDGE")
    expect(decision.get_by_text("Takes a number")).to_be_visible()
    decision.get_by_label("Value").fill("1.9")
    decision.get_by_label("Value").press("Enter")
    expect(page.locator("#again-status")).to_have_text("It ends otherwise.")
    expect(page.locator("#again-text ins", has_text="ACKNOWLEDGE").first).to_be_visible()
    routed = decision.get_by_role("region", name="router.mode_selected")
    expect(routed.locator("div", has_text="scores.ACKNOWLEDGE").locator("del")).to_have_text(re.compile(r"^-?[0-9.]+$"))
    serious_faults(page)
    # A wrong name is told beside the form, and what was tried before is still there.
    decision.get_by_label("Setting", exact=True).fill("ruter.act")
    decision.get_by_label("Value").fill("false")
    decision.get_by_role("button", name="Decide again").click()
    expect(page.locator("#again-status")).to_contain_text("did you mean 'router'")
    decision.get_by_role("button", name="Leave out ruter.act").click()
    expect(decision.get_by_role("button", name="Leave out router.base_scores.ACKNOWLEDGE")).to_be_visible()
    # Another decision is another question.
    row(page, "dashboard-refused").get_by_role("button").click()
    expect(page.locator("#again-status")).to_be_empty()


def test_who_leaves_a_decision_stops_what_is_under_way(page: Page) -> None:
    asked = list[str]()
    page.route("**/api/what-if", lambda route: asked.append(route.request.post_data or ""))  # it is never answered
    row(page, "dashboard-answered").get_by_role("button").click()
    page.get_by_text("Decide this again with other settings").click()
    page.get_by_label("Setting", exact=True).fill("router.act")
    page.get_by_label("Value").fill("false")
    page.get_by_role("button", name="Decide again").click()
    expect(page.locator("#again-status")).to_have_text("Deciding again")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#again-status")).to_have_text("Stopped.")
    assert json.loads(asked[0])["settings"] == {"router.act": "false"}
    page.keyboard.press("Escape")
    expect(page.locator("#decision")).to_be_hidden()


def test_a_breaker_is_reset_once_a_person_has_confirmed_it_and_said_why(page: Page, live: Live) -> None:
    live.ask(TAKEN_OVER, "--session", "dashboard-reset")
    live.ask("Hello!", "--session", "dashboard-last")
    breakers = page.get_by_role("region", name="Breakers")
    reset = breakers.get_by_role("button", name="Reset the breaker of dashboard-reset")
    reset.click()
    dialog = page.get_by_role("dialog", name="Reset this breaker?")
    expect(dialog).to_contain_text("dashboard-reset")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(reset).to_be_focused()
    # A key that may look, and not operate: told in the dialog, and the page stays open.
    refusal = '{"message": "this takes an operator\'s key"}'
    page.route("**/api/breaker/reset", lambda route: route.fulfill(status=403, json=json.loads(refusal)))
    reset.press("Enter")
    dialog.get_by_label("Your name").fill("ann")
    dialog.get_by_label("Why").fill("read the talk")
    serious_faults(page)
    dialog.get_by_role("button", name="Reset").click()
    expect(dialog.get_by_role("alert")).to_contain_text("may look, and not operate")
    page.unroute("**/api/breaker/reset")
    dialog.get_by_role("button", name="Reset").click()
    expect(dialog).to_be_hidden()
    expect(reset).to_have_count(0)
    (order,) = [
        each["data"]
        for each in live.events("forged_id.operator.breaker_reset_ordered")
        if each["session"] == "dashboard-reset"
    ]
    assert (order["by"], order["why"]) == ("ann", "read the talk")
    # Of the past nothing can be reset.
    page.get_by_role("slider").press("ArrowLeft")
    expect(page.locator("#connection")).to_have_text("Past")
    expect(breakers.get_by_role("button", name="Reset the breaker")).to_have_count(0)


def test_the_page_goes_on_where_it_was_once_a_killed_broker_is_back(page: Page, live: Live) -> None:
    broker = next(each for each in processes(live) if each["name"] == "broker")
    os.kill(broker["pid"], signal.SIGKILL)
    until(lambda: all(each["ready"] for each in processes(live)) and broker["pid"] not in pids(live), "the set is back")
    live.ask("Hello!", "--session", "dashboard-after-the-broker")
    expect(row(page, "dashboard-after-the-broker")).to_contain_text("executed")
    expect(page.locator("#connection")).to_have_text("Live")


def processes(live: Live) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((live.data / "run.json").read_text())["processes"]
    return found


def pids(live: Live) -> set[int]:
    return {each["pid"] for each in processes(live)}


ATTACK = """async ([address, exchange]) => {
  const told = {};
  const said = JSON.stringify({ exchange, reward: 1, comment: "taken" });
  const tried = async (name, path, options) => {
    const read = (answer) => answer.type === "opaque" ? "opaque" : answer.text();
    told[name] = await fetch(address + path, options).then(read, () => "refused");
  };
  await tried("read", "/api/exchanges", {});
  await tried("blindly", "/v1/feedback", { method: "POST", mode: "no-cors", body: said });
  const typed = { "Content-Type": "application/json" };
  await tried("openly", "/v1/feedback", { method: "POST", headers: typed, body: said });
  await tried("reset", "/api/breaker/reset", { method: "POST", mode: "no-cors",
    body: JSON.stringify({ session: "dashboard-refused", by: "x", why: "x" }) });
  const ended = (thing, good, bad) => new Promise((done) => {
    thing.addEventListener(good, () => done("opened"));
    thing.addEventListener(bad, () => done("refused"));
  });
  const image = new Image();
  const seen = ended(image, "load", "error");
  image.src = address + "/dashboard/style.css";
  told.image = await seen;
  const script = document.createElement("script");
  const ran = ended(script, "load", "error");
  script.src = address + "/dashboard/app.js";
  document.head.append(script);
  told.script = await ran;
  told.events = await ended(new EventSource(address + "/api/events?after=0"), "open", "error");
  told.socket = await ended(new WebSocket(address.replace("http", "ws") + "/api/events"), "open", "error");
  const frame = document.createElement("iframe");
  frame.name = "inside";
  const shown = new Promise((done) => frame.addEventListener("load", done));
  frame.src = address + "/dashboard";
  document.body.append(frame);
  await shown;
  let inside = null;
  try { inside = frame.contentDocument && frame.contentDocument.body.textContent; } catch { inside = null; }
  told.frame = inside || "refused";
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: address + "/v1/feedback", enctype: "text/plain", target: "inside" });
  const field = document.createElement("input");
  Object.assign(field, { name: said.slice(0, -1) + ', "x": "', value: '"}' });
  form.append(field);
  document.body.append(form);
  const sent = new Promise((done) => frame.addEventListener("load", done));
  form.submit();
  await sent;
  return told;
}"""
"""What a page of another origin may try: it reports what it got."""


@pytest.mark.parametrize("origin", ["http://127.0.0.1:18999", "http://evil.example"])
def test_a_page_of_another_origin_in_the_same_browser_reads_and_changes_nothing(
    browser: Browser, address: str, live: Live, asked: list[dict[str, Any]], origin: str
) -> None:
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        context.route(f"{origin}/**", lambda route: route.fulfill(content_type="text/html", body="<body>hostile"))
        own = context.new_page()
        own.goto(f"{address}/dashboard")
        page, answers = context.new_page(), list[int]()
        page.on("response", lambda got: answers.append(got.status) if got.url.startswith(address) else None)
        page.goto(f"{origin}/page")
        told = page.evaluate(ATTACK, [address, asked[0]["exchange"]])
        assert {name: got for name, got in told.items() if got not in ("refused", "opaque")} == {}
        assert not any(status < 400 for status in answers)
        own.close()
    given = [each for each in live.events("forged_id.feedback.given") if "taken" in json.dumps(each)]
    resets = [
        each
        for each in live.events("forged_id.operator.breaker_reset_ordered")
        if each["session"] == "dashboard-refused"
    ]
    assert (given, resets) == ([], [])


PICTURE = Path(__file__).parents[2] / "docs" / "images" / "dashboard.png"
"""The picture in the README: this test makes it, with ``NEURAXIS_PICTURE=write`` in the environment."""

COARSE = """async (pictures) => Promise.all(pictures.map(async (picture) => {
  const image = new Image();
  image.src = "data:image/png;base64," + picture;
  await image.decode();
  const canvas = new OffscreenCanvas(64, 41);
  const drawing = canvas.getContext("2d");
  drawing.drawImage(image, 0, 0, 64, 41);
  const pixels = drawing.getImageData(0, 0, 64, 41).data;
  return { width: image.width, height: image.height, grey: [...pixels].filter((_, place) => place % 4 === 1) };
}))"""
"""Pictures as their sizes, and as a few grey fields each: what stands where, whatever the fonts."""


def test_the_picture_in_the_readme_is_of_the_page_as_it_is(browser: Browser, address: str, tmp_path: Path) -> None:
    recorded = json.loads(Path(__file__).with_name("recorded_page.json").read_text())
    answers = {"/api/exchanges": recorded["exchanges"], "/api/overview": recorded["overview"]}

    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path != "/api/events":  # no event comes
            route.fulfill(json=recorded["why"] if path.endswith("/why") else answers[path])

    with browser.new_context(
        viewport={"width": 1180, "height": 760}, color_scheme="light", locale="en-GB", timezone_id="UTC"
    ) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.clock.set_fixed_time(recorded["now"])
        page.route("**/api/**", answer)
        page.goto(f"{address}/dashboard")
        opened = page.locator(f"tr[data-exchange='{recorded['exchange']}']").get_by_role("button")
        opened.click()
        expect(page.get_by_role("region", name="Decision", exact=True)).to_contain_text(recorded["why"]["sentence"])
        page.evaluate("scrollTo(0, 0)")
        made = page.screenshot(path=tmp_path / "dashboard.png")
        if os.environ.get("NEURAXIS_PICTURE") == "write":
            PICTURE.parent.mkdir(exist_ok=True)
            PICTURE.write_bytes(made)
        kept = PICTURE.read_bytes()
        assert len(kept) < 200_000
        now, before = page.evaluate(COARSE, [base64.b64encode(each).decode() for each in (made, kept)])
    assert (before["width"], before["height"]) == (now["width"], now["height"]) == (1180, 760)
    assert max(before["grey"]) - min(before["grey"]) > 50, "the picture is blank"
    apart = sum(abs(a - b) for a, b in zip(now["grey"], before["grey"], strict=True)) / len(now["grey"])
    assert apart < 12, f"the page looks otherwise than in {PICTURE.name}: make it anew with NEURAXIS_PICTURE=write"
