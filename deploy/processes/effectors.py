"""The registry of effectors, found in the packages below ``actors`` as actors are: adding one changes nothing here."""

import pkgutil
from importlib import import_module
from types import ModuleType

import actors
from actors.llm.settings import LlmSettings
from actors.runtime.effectors.spec import EffectorSpec
from actors.webhook.settings import WebhookSettings
from deploy.config.loading import Config


class InvalidEffector(ValueError):
    """A package exports an effector under another name: a mistake in the code, found at load."""

    code = "invalid_effector"


def load(package: ModuleType = actors) -> dict[str, EffectorSpec]:
    """Import the packages below ``package`` and return the effectors they export, by name, sorted.

    Raises:
        InvalidEffector: an export that is no effector, or not of its package's name.
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


EFFECTORS: dict[str, EffectorSpec] = load()
"""Name -> how to host it, sorted by name."""


def configured_effectors(config: Config) -> tuple[str, ...]:
    """Return the effectors that a configuration alone gives something to do, without a look at what answers."""
    llm = config.section("llm", LlmSettings)
    return needed_effectors(config, attached=llm.backend == "local" or bool(llm.base_url))


def needed_effectors(config: Config, *, attached: bool) -> tuple[str, ...]:
    """Return the effectors that have something to do; ``attached``: there is a language model, which the others serve.

    The webhook is needed where somebody is to receive alerts.
    """
    receivers = config.section("webhook", WebhookSettings).receivers
    return tuple(name for name in EFFECTORS if (receivers if name == "webhook" else attached))
