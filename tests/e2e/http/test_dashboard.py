"""The dashboard in a real browser, on a running set."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.http.browsing import opened, row, serious_faults
from tests.e2e.live import Live

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
"""What would run if people's words were read as markup."""


def test_a_new_exchange_appears_without_a_reload_and_its_decision_opens_as_a_tree(page: Page, live: Live) -> None:
    expect(page.get_by_text("Live", exact=True).first).to_be_visible()
    told = live.ask("What is the tallest mountain?", "--session", "dashboard-new")
    new = row(page, "dashboard-new")
    expect(new).to_contain_text("executed")
    expect(new).to_contain_text(told["mode"])
    new.get_by_role("button").click()
    decision = page.get_by_role("region", name="Decision")
    expect(decision).to_contain_text(told["sentence"])
    expect(decision.get_by_text("input.received")).to_be_visible()
    decision.get_by_role("button", name="Show every number").click()
    numbers = decision.locator("li", has_text="router.mode_selected").last.locator("dl").first
    expect(numbers).to_contain_text(str(told["confidence"]))


def test_a_refused_exchange_is_told_by_a_word_and_its_session_by_its_breaker(page: Page) -> None:
    expect(row(page, "dashboard-refused")).to_contain_text("blocked")
    expect(row(page, "dashboard-refused")).to_contain_text("prompt_injection")
    breakers = page.get_by_role("region", name="Breakers")
    expect(breakers.locator("li", has_text="dashboard-refused")).to_contain_text("trust 0.")
    expect(page.get_by_role("region", name="Alerts")).to_contain_text("critical breaker.tripped")
    expect(page.get_by_role("region", name="Modes")).to_contain_text("50 % to 75 %")
    expect(page.get_by_role("region", name="Actors")).to_contain_text("are served")


def test_the_slider_moves_the_whole_page_to_any_point_and_back(page: Page, asked: list[dict[str, Any]]) -> None:
    answered = page.request.get(f"{page.url.rsplit('/', 1)[0]}/api/exchanges/{asked[0]['exchange']}").json()
    row(page, "dashboard-answered").get_by_role("button").click()
    expect(page.get_by_role("region", name="Decision")).to_contain_text("response.emitted")
    # Before the refusal was asked, and before the answer was given.
    page.get_by_label("Event", exact=True).fill(str(answered["started_seq"]))
    page.get_by_label("Event", exact=True).press("Enter")
    expect(row(page, "dashboard-refused")).to_have_count(0)
    expect(row(page, "dashboard-answered")).to_contain_text("open")
    expect(page.locator("#breakers")).not_to_contain_text("dashboard-refused")
    expect(page.get_by_role("region", name="Decision")).to_contain_text("Open at this point")
    expect(page.get_by_role("region", name="Decision")).not_to_contain_text("response.emitted")
    expect(page.locator("#connection")).to_have_text("Past")
    expect(page.get_by_role("slider")).to_have_value(str(answered["started_seq"]))
    # To the latest event by the slider itself: what was refused is back, and the point is still one of the past.
    page.get_by_role("slider").press("End")
    expect(row(page, "dashboard-refused")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("Past")
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#connection")).to_have_text("Live")
    expect(row(page, "dashboard-answered")).to_contain_text("executed")


def test_filters_narrow_the_list_and_say_so_where_nothing_is_left(page: Page) -> None:
    page.get_by_label("Session").fill("dashboard-refused")
    expect(row(page, "dashboard-answered")).to_have_count(0)
    expect(row(page, "dashboard-refused")).to_be_visible()
    page.get_by_label("Action").select_option("EXECUTED")
    expect(page.get_by_text("No exchange is like that.")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(row(page, "dashboard-answered")).to_be_visible()
    for words in ("attack KNOWN", "prompt_injection"):
        page.get_by_label("Words of the reason").fill(words)
        expect(row(page, "dashboard-answered")).to_have_count(0)
        expect(row(page, "dashboard-refused")).to_be_visible()
    page.get_by_label("Agent").fill("nobody")
    expect(page.get_by_text("No exchange is like that.")).to_be_visible()


def test_nothing_of_what_people_wrote_runs(page: Page, live: Live) -> None:
    live.ask(HOSTILE, "--session", HOSTILE)
    hostile = row(page, HOSTILE)
    hostile.get_by_role("button").click()
    decision = page.get_by_role("region", name="Decision")
    decision.get_by_role("button", name="Show every number").click()
    expect(decision.locator("dd", has_text=HOSTILE).first).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "Neuraxis dashboard"


def test_all_of_it_works_by_the_keyboard(page: Page) -> None:
    button = row(page, "dashboard-refused").get_by_role("button")
    button.focus()
    button.press("Enter")
    expect(page.get_by_role("heading", name="Decision")).to_be_focused()
    expect(page.get_by_role("region", name="Decision")).to_contain_text("input.received")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Decision")).to_be_hidden()
    expect(button).to_be_focused()
    slider = page.get_by_role("slider")
    slider.press("Home")
    expect(page.get_by_text("Nobody had asked anything by then.")).to_be_visible()
    expect(slider).to_be_focused()


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_on_a_phone_nothing_overflows_and_axe_finds_nothing_serious(
    browser: Browser, address: str, asked: list[dict[str, Any]], scheme: Any
) -> None:
    with browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme) as context:
        for page in opened(context, address):
            row(page, "dashboard-refused").get_by_role("button").click()
            page.get_by_role("button", name="Show every number").click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            page.get_by_text("Decide this again with other settings").click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            serious_faults(page)


def test_what_this_release_cannot_read_is_told_where_it_is_missing(page: Page) -> None:
    def without_what_a_later_release_wrote(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        for name in ("alerts", "breakers"):
            told["recorded"][name] = []
        left_out = [
            {"topic": f"forged_id.{name}", "count": 2, "last_seq": 1} for name in ("alert.critical.x", "breaker.y")
        ]
        told["recorded"] |= {"alerts_firing": 0, "breakers_open": 0, "ended_unread": 1, "unread": left_out}
        route.fulfill(response=answer, json=told)

    def with_an_end_that_cannot_be_read(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        for each in told["exchanges"]:
            if each["session"] == "dashboard-refused":
                each |= {"stage": "", "action": "", "reason": "", "mode": ""}
        route.fulfill(response=answer, json=told)

    page.route("**/api/overview*", without_what_a_later_release_wrote)
    page.route("**/api/exchanges?*", with_an_end_that_cannot_be_read)
    page.reload()
    alerts, breakers = (page.get_by_role("region", name=name) for name in ("Alerts", "Breakers"))
    expect(alerts).to_contain_text("None that can be read fires.")
    expect(breakers).to_contain_text("None that can be read is open.")
    for panel in (alerts, breakers):
        expect(panel).to_contain_text("2 events that this release cannot read are left out.")
    expect(page.get_by_role("region", name="Modes")).not_to_contain_text("left out")
    expect(page.get_by_role("region", name="Latest exchanges")).to_contain_text("1 ended as this release cannot read")
    expect(row(page, "dashboard-refused")).to_contain_text("ended, unreadable")


def test_a_list_that_leaves_out_older_exchanges_says_so(page: Page) -> None:
    expect(page.locator("#listed")).to_have_text(re.compile("the latest first[.]$"))
    page.route("**/api/exchanges?*", lambda route: route.fulfill(json=route.fetch().json() | {"before": 1}))
    page.reload()
    expect(page.locator("#listed")).to_contain_text("There are older ones")


def test_a_log_that_lost_its_end_is_shown_as_far_as_it_goes(page: Page) -> None:
    slider = page.get_by_role("slider")
    head = int(slider.get_attribute("max") or 0)

    def with_less(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        told["recorded"]["head"] = head - 5
        route.fulfill(response=answer, json=told)

    page.route("**/api/overview*", with_less)
    expect(slider).to_have_attribute("max", str(head - 5))


def test_a_connection_that_is_away_is_told_and_comes_back_by_itself(page: Page, live: Live) -> None:
    page.route("**/api/**", lambda route: route.abort("connectionrefused"))
    page.get_by_label("Event", exact=True).fill("1")
    page.get_by_label("Event", exact=True).press("Enter")
    expect(page.locator("#connection")).to_have_text("Disconnected")
    expect(page.get_by_role("alert")).to_contain_text("What is shown may be old")
    expect(row(page, "dashboard-refused")).to_be_visible()
    page.unroute("**/api/**")
    expect(page.locator("#connection")).to_have_text("Past")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_set_that_is_not_ready_is_told_beside_what_is_recorded_and_so_is_its_end(page: Page) -> None:
    checks = {"log": "ok", "ledger": "n/a", "storing": "the broker cannot write to its store"}
    page.route("**/readyz", lambda route: route.fulfill(status=503, json={"status": "not_ready", "checks": checks}))
    expect(page.locator("#connection")).to_have_text("Trouble")
    told = "The set is not ready: storing: the broker cannot write to its store. What is shown is what was recorded."
    expect(page.get_by_role("alert")).to_have_text(told)
    expect(row(page, "dashboard-refused")).to_be_visible()
    page.unroute("**/readyz")
    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_restored_log_that_is_shorter_is_shown_at_its_own_length(page: Page) -> None:
    refused = False

    def longer(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        told["recorded"]["head"] += 1_000_000
        route.fulfill(response=answer, json=told)

    def broken_off(route: Route) -> None:
        if refused:
            route.fulfill(status=400, json={"message": "the log ends before that"})
        else:
            route.fulfill(content_type="text/event-stream", body="id: 1\ndata: {}\n\n")

    page.route("**/api/events*", broken_off)
    page.route("**/api/overview*", longer)
    page.reload()
    expect(page.get_by_role("slider")).to_have_attribute("max", re.compile(r"^\d{7}$"))
    page.unroute("**/api/overview*")
    refused = True
    expect(page.get_by_role("slider")).to_have_attribute("max", re.compile(r"^\d{1,6}$"), timeout=30_000)


def test_a_key_is_asked_for_where_there_are_keys_and_sent_as_a_header_alone(page: Page) -> None:
    right, addresses = "k" * 24, list[str]()

    def guarded(route: Route) -> None:
        addresses.append(route.request.url)
        if route.request.headers.get("authorization") == f"Bearer {right}":
            route.continue_()
        else:
            route.fulfill(status=401, content_type="application/json", body='{"message": "an API key is needed"}')

    page.route("**/api/**", guarded)
    page.reload()
    expect(page.get_by_label("API key")).to_be_focused()
    expect(page.locator("main")).to_be_hidden()
    page.get_by_label("API key").fill("w" * 24)
    page.get_by_label("API key").press("Enter")
    expect(page.get_by_text("That key does not open it")).to_be_visible()
    page.get_by_label("API key").fill(right)
    page.get_by_role("button", name="Open").click()
    expect(row(page, "dashboard-refused")).to_be_visible()
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    assert not any(right in each for each in addresses)
    page.get_by_role("button", name="Forget the key").click()
    expect(page.get_by_label("API key")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
