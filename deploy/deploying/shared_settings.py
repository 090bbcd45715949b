"""The ``neuraxis.toml`` beside a broker's files: what every process of the deployment must agree on with the broker.

The settings of the processes are often added to the same file, and the files are written again after an upgrade. So a
file with further settings is kept as it is, if it agrees with the broker's.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.config.loading import RUNNING_SECTIONS, BadConfiguration, Config, Layer, resolve
from deploy.config.text_files import read_bounded
from deploy.deploying.broker_plan import BrokerPlan

FIXED_KEYS = ("agents", "sessions", "sealed")
"""Keys of the section ``log`` that are fixed when the stream is made; written if somebody has set them."""

_HEAD = "# Every process of the deployment takes this file: --config, or neuraxis.toml in its folder.\n"


class SettingsDiffer(ValueError):
    """A file with the settings of the processes contradicts the broker's files; the message names the key."""

    code = "bad_configuration"


def fixed_settings(config: Config) -> dict[str, Any]:
    """Return those of :data:`FIXED_KEYS` that the configuration sets, with their values."""
    return {key: getattr(config.log, key) for key in FIXED_KEYS if f"log.{key}" in config.origins}


def shared_settings(plan: BrokerPlan) -> dict[str, dict[str, Any]]:
    """Return what all processes must agree on, by section and key."""
    return {
        "broker": {"sync": plan.sync, "alert_consumers": list(plan.alert_consumers)},
        "log": {"stream": plan.stream, "replicas": plan.replicas, **plan.log},
    }


def settings_text(plan: BrokerPlan) -> str:
    """Return the file of the settings that all processes must agree on."""
    sections = (
        f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for section, values in shared_settings(plan).items()
    )
    return _HEAD + "\n".join(sections)


def settings_to_write(plan: BrokerPlan, file: Path) -> bytes | None:
    """Return what to write into the file of settings; None if the file has further settings and fits the plan.

    Raises:
        SettingsDiffer: the file has further settings and contradicts the plan, or is no configuration.
        OSError: it cannot be read.
    """
    text = settings_text(plan)
    if not file.exists():
        return text.encode()
    try:
        there = tomllib.loads(read_bounded(file))
        if set(_keys(there)) <= set(_keys(shared_settings(plan))):
            return text.encode()
        config = resolve(RUNNING_SECTIONS, [Layer(str(file), there)], ignore_others=True)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise SettingsDiffer(f"{file} is there, and is not TOML: correct it, or move it aside ({wrong})") from wrong
    except BadConfiguration as wrong:
        raise SettingsDiffer(f"{wrong}; correct it, or move the file aside") from wrong
    for section, wanted in shared_settings(plan).items():
        for key, value in wanted.items():
            found = getattr(config.sections[section], key)
            if (list(found) if isinstance(found, tuple) else found) != value:
                raise SettingsDiffer(
                    f"{file} has {section}.{key} = {json.dumps(found)}, and the broker's files would have "
                    f"{json.dumps(value)}: correct one of them (--config {file} takes what it says), or write into "
                    "another folder"
                )
    return None


def _keys(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield section and key of each value; the key is empty for a value outside of sections."""
    for section, inner in values.items():
        if isinstance(inner, Mapping):
            yield from ((section, key) for key in inner)
        else:
            yield section, ""
