"""The registry of effectors, which call models and others outside. Each is found by its package below ``actors``."""

import pkgutil
from importlib import import_module
from types import ModuleType

import actors
from actors.llm.settings import LlmSettings
from actors.runtime.effectors.spec import EffectorSpec
from actors.webhook.settings import WebhookSettings
from deploy.config.loading import Config


class InvalidEffector(ValueError):
    """A package exports as EFFECTOR something else, or under another name: a mistake in the code, found at import."""

    code = "invalid_effector"


def load_effectors(package: ModuleType = actors) -> dict[str, EffectorSpec]:
    """Import the packages below ``package`` and return the effectors they export, by name, sorted.

    Raises:
        InvalidEffector: an export is not an effector, or has another name than its package.
    """
    found: dict[str, EffectorSpec] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg):
        exported = getattr(import_module(f"{package.__name__}.{name}"), "EFFECTOR", None)
        if exported is None:
            continue
        if not isinstance(exported, EffectorSpec) or exported.name != name:
            raise InvalidEffector(
                f"actors/{name} exports EFFECTOR = {exported!r}: make it an EffectorSpec named {name!r}"
            )
        found[name] = exported
    return found


EFFECTORS: dict[str, EffectorSpec] = load_effectors()
"""Name -> how to host it, sorted by name."""


def configured_effectors(config: Config) -> tuple[str, ...]:
    """Return the effectors that the configuration alone makes necessary; no endpoint is asked whether it answers."""
    llm = config.section("llm", LlmSettings)
    return needed_effectors(config, attached=llm.backend == "local" or bool(llm.base_url))


def needed_effectors(config: Config, *, attached: bool) -> tuple[str, ...]:
    """Return the effectors that have something to do.

    The webhook has if receivers of alerts are configured; all others have if a language model is attached.
    """
    receivers = config.section("webhook", WebhookSettings).receivers
    return tuple(name for name in EFFECTORS if (receivers if name == "webhook" else attached))
