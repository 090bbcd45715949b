"""OpenAI's own client with the gateway as its base URL: the guards read each request before it goes to the model.

Run it with the questions as arguments. ``neuraxis up --set gateway.upstream.url=...`` names the endpoint of the model;
``NEURAXIS_URL`` is the gateway, and ``OPENAI_API_KEY`` the endpoint's key, or one of the gateway's where it has keys.
"""

import os
import sys

from openai import OpenAI


def main(questions: list[str]) -> None:
    gateway = os.environ.get("NEURAXIS_URL", "http://127.0.0.1:8642")
    with OpenAI(base_url=f"{gateway}/v1") as client:
        for question in questions:
            answer = client.chat.completions.create(
                model="gpt-4o-mini", messages=[{"role": "user", "content": question}]
            )
            [choice] = answer.choices
            if choice.finish_reason == "content_filter":
                decided = answer.neuraxis  # type: ignore[attr-defined]  # what the gateway adds
                print("refused:", decided["stage"], decided["reason"])
            else:
                print("answered:", choice.message.content)


if __name__ == "__main__":
    main(sys.argv[1:])
