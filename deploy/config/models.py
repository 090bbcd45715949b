"""Which language model a set uses: the configured one, else an Ollama on this machine, else none.

Without a model the composer answers, from what is remembered, and says so. Only the search uses the network; the choice
itself is pure.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import get_args
from urllib.parse import urlsplit

import msgspec

from actors.contract.privacy import recognising
from actors.llm.endpoint import BadEndpoint, Endpoint, api_key, base_url
from actors.llm.local import model_file
from actors.llm.settings import LlmSettings, Models
from actors.llm.wire.response_parsing import ListedModel
from actors.responder.settings import LEAST_CONTEXT, MOST_CONTEXT
from deploy.config.loading import BadConfiguration, Config
from deploy.processes.running_set import ModelInUse
from schemas.effectors.model_calls import Purpose
from schemas.effectors.model_settings import model_setting_paths

OLLAMA = "http://127.0.0.1:11434/v1"
"""Where an Ollama listens unless it was told otherwise."""

SEARCH_TIMEOUT_S = 0.5
"""Seconds in which an Ollama that nobody named must answer; a start without one takes this much longer."""

LISTING_TIMEOUT_S = 3.0
"""Seconds in which a configured endpoint must list its models."""

OLLAMA_CONTEXT = 4_096
"""Tokens of context that an Ollama gives a model by default; it cuts a longer prompt without an error."""

PURPOSES: tuple[str, ...] = get_args(Purpose)


JUDGE = "appraisal.trust.judge"
"""The setting that has a model judge how far an input can be trusted."""

_GATE = "appraisal.trust.gate"
"""The setting that makes inputs wait for that judgement, unless it is ``local``."""


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The model of a set: ``use`` is for ``run.json``, ``models`` names it for each purpose, ``why`` it was chosen.

    ``warning`` says what is doubtful about it, or is empty. ``context`` is the models' context in tokens, by the
    settings or the endpoint; 0: not known. ``assumed``: it is Ollama's default context.
    """

    use: ModelInUse
    models: Models = Models()
    why: str
    warning: str = ""
    context: int = 0
    assumed: bool = False


async def choose_model(
    config: Config, environment: Mapping[str, str], *, ollama: str = OLLAMA, search_timeout_s: float = SEARCH_TIMEOUT_S
) -> ModelChoice:
    """Choose the model by the configuration; a configured endpoint is used even if it does not answer.

    An Ollama that nobody named must answer within ``search_timeout_s`` seconds.

    Raises:
        BadEndpoint: an address, a key or a local model that cannot be used.
    """
    settings = config.section("llm", LlmSettings)
    if fault := recognising.why_not_masked(settings.privacy):
        raise BadEndpoint(f"llm.privacy is on, and {fault}")
    if settings.backend == "composer":
        return _composer_choice("llm.backend says so")
    if settings.backend == "local":
        file = model_file(settings)
        use = ModelInUse(backend="local", models=(file.stem,))
        context = settings.context_tokens or settings.local_context
        return ModelChoice(use=use, models=settings.models, why=f"{file.name} in the worker itself", context=context)
    pinned = {purpose for purpose in PURPOSES if f"llm.models.{purpose}" in config.origins}
    if settings.backend == "auto" and not settings.base_url:
        listed = await listed_models(Endpoint(ollama), search_timeout_s)
        models = usable_models(settings.models, names_in(listed), pinned) if isinstance(listed, tuple) else None
        if models is None or isinstance(listed, str):
            problem = "no Ollama answers here" if isinstance(listed, str) else "the Ollama here has no model for it"
            return _composer_choice(f"no endpoint is set, and {problem}")
        found = _endpoint_choice(ollama, models, "an Ollama answers on this machine")
        return _with_context(found, settings, listed, is_ollama=True)
    endpoint = Endpoint(base_url(settings.base_url), api_key(environment, settings.api_key_file))
    listed = await listed_models(endpoint, LISTING_TIMEOUT_S)
    is_ollama = urlsplit(endpoint.base_url).port == urlsplit(OLLAMA).port
    if isinstance(listed, str):
        found = _endpoint_choice(
            endpoint.base_url, settings.models, "it was named", f"it does not list its models: {listed}"
        )
        return _with_context(found, settings, (), is_ollama=is_ollama)
    models = usable_models(settings.models, names_in(listed), pinned) or settings.models
    unlisted = missing_models(models, names_in(listed))
    warning = f"it does not list {', '.join(unlisted)}" if unlisted else ""
    found = _endpoint_choice(endpoint.base_url, models, "it was named", warning)
    return _with_context(found, settings, listed, is_ollama=is_ollama)


def _with_context(
    choice: ModelChoice, settings: LlmSettings, listed: Sequence[ListedModel], *, is_ollama: bool
) -> ModelChoice:
    """Return the choice with its models' context: as set, as listed, or Ollama's default."""
    contexts = [each.context for each in listed if each.context and is_listed_as(each.name, names_of(choice.models))]
    known = settings.context_tokens or min(contexts, default=0)
    assumed = not known and is_ollama
    return msgspec.structs.replace(choice, context=OLLAMA_CONTEXT if assumed else known, assumed=assumed)


async def listed_models(endpoint: Endpoint, within_s: float) -> tuple[ListedModel, ...] | str:
    """Return the models that an endpoint lists, or a short text on what went wrong."""
    from actors.llm.client import CallFailed, ChatClient  # an HTTP client takes a tenth of a second to load
    from events.libraries.http_client import BadEnvironment

    try:
        async with (
            asyncio.timeout(within_s),
            ChatClient.open(endpoint, connect_s=within_s, concurrency=1) as client,
        ):
            return await client.models()
    except TimeoutError:
        return f"no answer within {within_s:g} s"
    except CallFailed as failed:
        return f"{failed.reason.replace('_', ' ')} ({failed.error})"
    except BadEnvironment as wrong:
        return str(wrong)


def usable_models(wanted: Models, listed: Sequence[str], pinned: Collection[str]) -> Models | None:
    """Return the models to ask at an endpoint that lists ``listed``; None when it lists no chat model.

    A wanted model that is listed is used; one that somebody configured (its purpose is in ``pinned``) is used in any
    case. Any other is replaced by the first wanted model that is listed, else by the first that is listed.
    """
    chat_models = [name for name in listed if "embed" not in name.lower()]
    if not chat_models:
        return None
    available = [name for name in (wanted.of(purpose) for purpose in get_args(Purpose)) if is_listed(name, chat_models)]
    substitute = (available or chat_models)[0]
    chosen = {
        purpose: name if purpose in pinned or not name or is_listed(name, chat_models) else substitute
        for purpose, name in ((purpose, getattr(wanted, purpose)) for purpose in PURPOSES)
    }
    return Models(**chosen)


def missing_models(models: Models, listed: Sequence[str]) -> list[str]:
    """Return the models to be asked that an endpoint does not list."""
    return [name for name in names_of(models) if not is_listed(name, listed)]


def names_of(models: Models) -> tuple[str, ...]:
    """Return the models in use, each once."""
    return tuple(dict.fromkeys(name for name in (getattr(models, purpose) for purpose in PURPOSES) if name))


def worker_flags(choice: ModelChoice) -> tuple[str, ...]:
    """Return the configuration flags that tell the worker of the effectors which model to use."""
    use = choice.use
    assignments = [f"llm.backend={use.backend}"]
    if use.base_url:
        assignments.append(f"llm.base_url={use.base_url}")
    assignments += [f"llm.models.{purpose}={getattr(choice.models, purpose)}" for purpose in PURPOSES]
    if choice.context and not choice.assumed:
        assignments.append(f"llm.context_tokens={choice.context}")
    return _set_flags(assignments)


def actor_flags(choice: ModelChoice, config: Config) -> tuple[str, ...]:
    """Return the configuration flags that make the actors ask the model; settings made by a person are not changed."""
    if choice.use.backend == "composer":
        return ()
    settings: dict[str, object] = dict.fromkeys(_model_setting_names(config), "llm")
    if choice.use.backend == "local":
        settings.pop(JUDGE, None)  # the small model judges too badly; a person can still configure it
    if choice.context:
        settings["responder.context_tokens"] = min(max(choice.context, LEAST_CONTEXT), MOST_CONTEXT)
    settings["arbiter.deliberative_timeout_ms"] = config.section("llm", LlmSettings).deliberation_ms
    return _set_flags(
        f"{name}={value}"
        for name, value in settings.items()
        if name.partition(".")[0] in config.sections and name not in config.origins
    )


def _model_setting_names(config: Config) -> Iterator[str]:
    for section, settings in config.sections.items():
        yield from (f"{section}.{path}" for path in model_setting_paths(type(settings)))


def check_answerable(choice: ModelChoice, config: Config) -> None:
    """Refuse settings that make an actor ask a language model if none is attached: nobody would answer.

    Raises:
        BadConfiguration: there is such a setting; the message names it and the ways out.
    """
    if choice.use.backend != "composer":
        return
    for name, value in model_settings_in(config):
        raise BadConfiguration(
            f"{name}={value} ({config.origins[name]}) asks a language model, and none is attached: {choice.why}. "
            f"Name one with llm.base_url or --llm, or remove the setting: a model is then asked if one is attached"
        )


def model_settings_in(config: Config) -> tuple[tuple[str, str], ...]:
    """Return the configured settings that make an actor ask a language model: name and value."""
    found = []
    for name in (*_model_setting_names(config), _GATE):
        if name not in config.origins:
            continue
        section, _, key = name.partition(".")
        value: str = attrgetter(key)(config.sections[section])
        if value == "llm" or (name == _GATE and value != "local"):
            found.append((name, value))
    return tuple(found)


def _set_flags(assignments: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for assignment in assignments for part in ("--set", assignment))


def _composer_choice(why: str) -> ModelChoice:
    return ModelChoice(use=ModelInUse(backend="composer"), why=why)


def _endpoint_choice(base_url: str, models: Models, why: str, warning: str = "") -> ModelChoice:
    use = ModelInUse(backend="openai", base_url=base_url, models=names_of(models))
    return ModelChoice(use=use, models=models, why=why, warning=warning)


def names_in(listed: Iterable[ListedModel]) -> tuple[str, ...]:
    """Return the names of listed models."""
    return tuple(each.name for each in listed)


def is_listed_as(name: str, models_asked: Iterable[str]) -> bool:
    """Whether a listed model is one of those that are asked."""
    return any(is_listed(each, (name,)) for each in models_asked)


def is_listed(name: str, listed: Collection[str]) -> bool:
    """Whether a model is listed; Ollama lists one without a tag as ``<name>:latest``."""
    return bool(name) and (name in listed or f"{name}:latest" in listed)
