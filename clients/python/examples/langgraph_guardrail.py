"""A LangGraph graph whose model's input and output are checked by the guards.

Run it with the questions as arguments. ``OPENAI_BASE_URL`` is the address of the model, ``OPENAI_API_KEY`` its key,
``NEURAXIS_URL`` the address of the guards.
"""

import asyncio
import sys
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from openai import AsyncOpenAI

from neuraxis import AsyncClient, Layer

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class State(MessagesState, total=False):
    """The conversation, and why it was stopped, if it was."""

    refused: str


def layers_of(messages: list[AnyMessage]) -> list[Layer]:
    """Return messages as layers of a prompt, each in its role."""
    return [Layer(role=ROLES.get(each.type, "document"), content=each.text) for each in messages]  # type: ignore[arg-type]


def build(guards: AsyncClient, model: AsyncOpenAI) -> Any:
    """Return the graph: guard what goes in, ask the model, guard what comes out."""

    async def guard_input(state: State) -> dict[str, Any]:
        *earlier, last = state["messages"]
        verdict = await guards.check(last.text, layers=layers_of(earlier))
        return {} if verdict.allowed else {"refused": f"input {verdict.reason}"}

    async def ask(state: State) -> dict[str, Any]:
        messages: Any = [{"role": each.role, "content": each.content} for each in layers_of(state["messages"])]
        answer = await model.chat.completions.create(model="gpt-4o-mini", messages=messages)
        return {"messages": [AIMessage(answer.choices[0].message.content or "")]}

    async def guard_output(state: State) -> dict[str, Any]:
        verdict = await guards.check(layers=layers_of(state["messages"][-1:]))
        return {} if verdict.allowed else {"refused": f"output {verdict.reason}"}

    def unless_refused(state: State) -> str:
        return END if state.get("refused") else "ask"

    graph = StateGraph(State)
    graph.add_node("guard_input", guard_input)
    graph.add_node("ask", ask)
    graph.add_node("guard_output", guard_output)
    graph.add_edge(START, "guard_input")
    graph.add_conditional_edges("guard_input", unless_refused, ["ask", END])
    graph.add_edge("ask", "guard_output")
    graph.add_edge("guard_output", END)
    return graph.compile()


async def main(questions: list[str]) -> None:
    async with AsyncClient() as guards, AsyncOpenAI() as model:
        graph = build(guards, model)
        for question in questions:
            state = await graph.ainvoke({"messages": [HumanMessage(question)]})
            if state.get("refused"):
                print("refused:", state["refused"])
            else:
                print("answered:", state["messages"][-1].text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
