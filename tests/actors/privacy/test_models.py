"""What a model of ours is shown where people's data is masked, over real HTTP, and what is recorded of it."""

import json

import msgspec

from actors.contract.privacy.settings import PrivacySettings
from schemas.effectors.model_calls import ChatMessage
from schemas.event import encode_event
from tests.actors.llm import scripted
from tests.actors.llm.asking import PLAN, QUICK, Asking, call_of, over
from tests.actors.llm.scripted import fails, says, streams

ASKED = call_of(
    messages=(ChatMessage(role="system", content="Be kind."), ChatMessage(role="user", content="I am ada@example.org."))
)
MASKING = msgspec.structs.replace(QUICK, privacy=PrivacySettings(mask=True))


def test_a_model_is_shown_placeholders_and_its_answer_is_recorded_with_the_data_and_the_count() -> None:
    @over(says("Hello [EMAIL_1]!"), settings=MASKING)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        completed = await asking.completed(ASKED)
        sent = json.dumps(endpoint.asked[0].document)
        assert "ada@example.org" not in sent
        assert "I am [EMAIL_1]." in sent
        assert completed.text == "Hello ada@example.org!"
        assert [(each.kind, each.count) for each in completed.masked] == [("email", 1)]
        assert "phonenumberslite-" in completed.recogniser


def test_a_streamed_answer_is_told_with_the_data() -> None:
    words = [f"word{number} " for number in range(60)]

    @over(streams("Hello [EM", "AIL_", "1], ", *words), settings=MASKING)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed(msgspec.structs.replace(ASKED, stream_to="_INBOX.x.1"))
        assert "".join(each["text"] for _, each in asking.published).startswith("Hello ada@example.org, word0")


def test_an_answer_in_json_stays_json() -> None:
    @over(says('{"skill": "recall", "query": "[EMAIL_1]"}'), settings=MASKING)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        schema = {**PLAN, "properties": {**PLAN["properties"], "query": {"type": "string"}}}
        completed = await asking.completed(msgspec.structs.replace(ASKED, answer_schema=schema))
        assert json.loads(completed.text)["query"] == "ada@example.org"


def test_what_is_masked_is_recorded_where_a_model_fails_too_and_without_words() -> None:
    @over(fails(400), settings=MASKING)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed(ASKED)
        assert [each.kind for each in failed.masked] == ["email"]
        assert b"ada@example.org" not in encode_event(failed)


def test_by_default_and_for_other_agents_a_prompt_goes_out_as_it_is() -> None:
    elsewhere = msgspec.structs.replace(QUICK, privacy=PrivacySettings(agents={"clerk": True}))
    for settings in (QUICK, elsewhere):

        @over(says("Hello!"), settings=settings)
        async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
            completed = await asking.completed(ASKED)
            assert "ada@example.org" in json.dumps(endpoint.asked[0].document)
            assert (completed.masked, completed.recogniser) == ((), "")
