"""The effectors there are, found in the packages below ``actors`` as actors are: adding one touches nothing here."""

import pkgutil
from importlib import import_module
from types import ModuleType

import actors
from actors.runtime.hosting import Hosting


class InvalidEffector(ValueError):
    """A package exports an effector under another name: a mistake in the code, found at load."""

    code = "invalid_effector"


def load(package: ModuleType = actors) -> dict[str, Hosting]:
    """Import the packages below ``package`` and return the effectors they export, by name, sorted.

    Raises:
        InvalidEffector: an export that is no effector, or not of its package's name.
    """
    found: dict[str, Hosting] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg):
        exported = getattr(import_module(f"{package.__name__}.{name}"), "EFFECTOR", None)
        if exported is None:
            continue
        if not isinstance(exported, Hosting) or exported.name != name:
            raise InvalidEffector(f"actors/{name} exports EFFECTOR = {exported!r}: make it a Hosting named {name!r}")
        found[name] = exported
    return found


EFFECTORS: dict[str, Hosting] = load()
"""Name -> how to host it, sorted by name."""
