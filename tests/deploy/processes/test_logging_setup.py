"""What logs hold, and what they never do."""

import json
import subprocess
import sys

import pytest

from deploy.logging_setup import name_actor, redact, shorten_lists
from tests.each import each


@each(
    ("method", "key", "value", "shown"),
    [
        ("info", "text", "my secret diary", "[hidden]"),
        ("warning", "response", "an answer", "[hidden]"),
        ("info", "layers", [{"content": "words"}], "[hidden]"),
        ("debug", "text", "my secret diary", "my secret diary"),
        ("debug", "password", "hunter2", "[hidden]"),
        ("info", "api_key", "sk-1", "[hidden]"),
        ("info", "Authorization", "Bearer x", "[hidden]"),
        ("info", "prompt_tokens", 12, 12),
        ("info", "url", "nats://me:hunter2@broker:4222", "nats://[hidden]@broker:4222"),
        ("info", "detail", "cannot reach tls://token@broker today", "cannot reach tls://[hidden]@broker today"),
        ("info", "reason", "low_confidence", "low_confidence"),
    ],
)
def test_secrets_are_hidden_always_and_words_above_debug(method: str, key: str, value: object, shown: object) -> None:
    assert redact(None, method, {"event": "x", key: value})[key] == shown


def test_people_see_which_actor_speaks() -> None:
    said = name_actor(None, "info", {"event": "Mode selected: RESPOND", "actor": "router"})
    assert said == {"event": "[ROUTER] Mode selected: RESPOND"}


def logged(code: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    ).stderr


SAYS = """
import logging, sys, structlog
from deploy import logging_setup
logging_setup.set_up("info", sys.argv[1], process="deciders")
with structlog.contextvars.bound_contextvars(exchange="e1"):
    structlog.get_logger("neuraxis.test").info("decided", actor="router", text="words")
logging.getLogger("nats").warning("from a library")
structlog.get_logger("neuraxis.test").debug("unseen")
"""


def test_json_lines_carry_process_logger_level_and_exchange() -> None:
    own, foreign = (json.loads(line) for line in logged(SAYS, "json").splitlines())
    assert own["event"] == "decided"
    assert (own["process"], own["logger"], own["level"], own["exchange"]) == ("deciders", "neuraxis.test", "info", "e1")
    assert own["text"] == "[hidden]"
    assert (foreign["event"], foreign["logger"], foreign["process"]) == ("from a library", "nats", "deciders")


def test_the_pretty_form_names_the_actor_and_colours_no_pipe() -> None:
    own = logged(SAYS, "pretty").splitlines()[0]
    assert "[ROUTER] decided" in own
    assert "\x1b" not in own


ANEW = """
import structlog
from deploy import logging_setup
logger = structlog.get_logger("neuraxis.test")
for style in ("pretty", "json"):
    logging_setup.set_up("info", style)
    logger.info("decided", text="words")
"""


def test_what_is_set_up_anew_holds_for_loggers_that_are_in_use() -> None:
    """A logger keeps what it passes its lines through once it has been used: that is one list, filled anew."""
    _, second = logged(ANEW).splitlines()
    assert json.loads(second)["timestamp"].endswith("Z"), "as JSON's lines have it, people's have local time"


def test_people_get_the_length_of_a_long_list_and_a_short_one_in_full() -> None:
    event = shorten_lists(None, "info", {"hosts": tuple("abcdefghi"), "models": ("m",), "event": "worker_ready"})
    assert event == {"hosts": "9 of them", "models": ("m",), "event": "worker_ready"}


FAILS = """
import logging, sys
from deploy import logging_setup
import rich.console  # as a command that draws has it
logging_setup.set_up("info", sys.argv[1])
def answer(words):
    raise ValueError("no answer")
try:
    answer(sys.argv[2])
except ValueError:
    logging.getLogger("neuraxis.test").exception("request_failed")
"""


@pytest.mark.parametrize("style", ["json", "pretty"])
def test_a_traceback_shows_where_it_failed_and_no_value_of_a_variable(style: str) -> None:
    said = logged(FAILS, style, "my secret diary")
    assert "in answer" in said
    assert "ValueError: no answer" in said
    assert "diary" not in said


DRAWING = {"rich", "pygments", "matplotlib"}


def test_what_runs_for_days_loads_nothing_that_draws() -> None:
    loaded = (
        "import sys, deploy.processes.worker, deploy.processes.gateway.process, deploy.processes.up; "
        "print(*sys.modules, file=sys.stderr)"
    )
    assert not {*DRAWING, "attr"} & set(logged(loaded).split())


def test_what_effectors_load_once_they_have_something_to_do_draws_nothing() -> None:
    loaded = (
        "import sys, actors.llm.calling, actors.llm.client, actors.webhook.alert_delivery; "
        "print(*sys.modules, file=sys.stderr)"
    )
    assert not DRAWING & set(logged(loaded).split())
