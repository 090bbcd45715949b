"""An agent of OpenAI's Agents SDK with an input and an output guardrail.

Run it with the questions as arguments. ``OPENAI_BASE_URL`` is the address of the model, ``OPENAI_API_KEY`` its key,
``NEURAXIS_URL`` the address of the guards.
"""

import asyncio
import sys
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    OpenAIChatCompletionsModel,
    OutputGuardrail,
    OutputGuardrailTripwireTriggered,
    RunContextWrapper,
    Runner,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from neuraxis import AsyncClient, Input, Layer, Verdict

ROLES = {"developer": "system"}


def text_of(content: Any) -> str:
    """Return the text of a message, or of its parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def layers_of(items: list[Any]) -> list[Layer]:
    """Return items of a run as layers of a prompt, including results of tools."""
    return [
        Layer(role=ROLES.get(each["role"], each["role"]), content=text_of(each.get("content")))
        if "role" in each
        else Layer(role="tool", content=text_of(each.get("output") or each.get("arguments")))
        for each in items
    ]


def input_of(given: str | list[Any]) -> Input:
    """Return the beginning of a run as an input to check; the user's last message is its text."""
    if isinstance(given, str):
        return Input(text=given)
    *earlier, last = layers_of(given)
    return Input(text=last.content, layers=earlier)


def output_of(verdict: Verdict) -> GuardrailFunctionOutput:
    """Return a verdict as the SDK expects it; ``output_info`` keeps it for code that catches the exception."""
    return GuardrailFunctionOutput(output_info=verdict, tripwire_triggered=not verdict.allowed)


def guarded(guards: AsyncClient, model: AsyncOpenAI) -> Agent[None]:
    """Return an agent whose input is checked before the model is asked, and whose answer before it is returned."""

    async def check_input(_: RunContextWrapper[None], agent: Agent[Any], given: Any) -> GuardrailFunctionOutput:
        return output_of((await guards.check_all([input_of(given)]))[0])

    async def check_output(_: RunContextWrapper[None], agent: Agent[Any], answer: Any) -> GuardrailFunctionOutput:
        return output_of(await guards.check(layers=[Layer(role="assistant", content=str(answer))]))

    return Agent(
        name="Guide",
        instructions="Answer in one sentence.",
        model=OpenAIChatCompletionsModel("gpt-4o-mini", openai_client=model),
        input_guardrails=[InputGuardrail(check_input, run_in_parallel=False)],  # else the model is asked meanwhile
        output_guardrails=[OutputGuardrail(check_output)],
    )


async def main(questions: list[str]) -> None:
    set_tracing_disabled(True)  # otherwise the SDK sends a trace of each run to OpenAI
    async with AsyncClient() as guards, AsyncOpenAI() as model:
        agent = guarded(guards, model)
        for question in questions:
            try:
                result = await Runner.run(agent, question)
            except InputGuardrailTripwireTriggered as stopped:
                print("refused: input", stopped.guardrail_result.output.output_info.reason)
            except OutputGuardrailTripwireTriggered as stopped:
                print("refused: output", stopped.guardrail_result.output.output_info.reason)
            else:
                print("answered:", result.final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
