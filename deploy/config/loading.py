"""The configuration: defaults, one TOML file, environment, flags. Later ones win, and each value knows its origin.

A section is a frozen struct: those of ``deploy.config.settings``, and one for each actor and effector. Unknown keys are
refused with the nearest known name. Tables are merged key by key; any other value, a list included, is replaced whole.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

import actors
from deploy.config.assignments import key_of
from deploy.config.error_messages import error_of_section, with_key
from deploy.config.settings import (
    BrokerSettings,
    GatewaySettings,
    LogSettings,
    RuntimeSettings,
    TelemetrySettings,
)
from deploy.config.text_files import read_bounded, with_text_files
from events.files.bounded_files import PIPE_WAIT_S
from schemas.intake.error_messages import union_members
from schemas.intake.nearest_name import nearest_name
from schemas.intake.strict import did_you_mean
from schemas.settings.nested_values import leaves, overlaid
from schemas.settings.unreachable_settings import unreachable_setting

DEFAULT_FILE = Path("neuraxis.toml")
ENVIRONMENT_PREFIX = "NEURAXIS_"
"""Prefix of the variables that set values: ``NEURAXIS_<SECTION>__<KEY>``, deeper keys after further ``__``."""

MODEL_VARIABLE = "NEURAXIS_LLM_URL"
"""Variable that names the language model by a word or a URL: see :func:`model_layer`."""

UPSTREAM_VARIABLE = "NEURAXIS_UPSTREAM_API_KEY"
"""Variable that holds the key of the endpoint that the gateway passes requests on to."""

VARIABLES = (
    MODEL_VARIABLE,
    "NEURAXIS_LLM_API_KEY",
    UPSTREAM_VARIABLE,
    "NEURAXIS_API_KEYS",
    "NEURAXIS_OPERATOR_KEYS",
    "NEURAXIS_MODELS",
)
"""The variables with the prefix that are not a section's key. A variable that is almost one of these is refused."""

CLIENT_KEY_VARIABLE = "NEURAXIS_API_KEY"
"""Variable of the key that a client calls with. Whoever sets it for a gateway believes that it then asks for a key."""

DEFAULT_ORIGIN = "default"

_LEAST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**63 - 1

Sections = Mapping[str, type[msgspec.Struct]]
"""Section name -> the struct of its settings."""

T = TypeVar("T", bound=msgspec.Struct)


class BadConfiguration(ValueError):
    """The configuration cannot be used; the message names the place, the key and the remedy."""

    code = "bad_configuration"


class Layer(msgspec.Struct, frozen=True):
    """Values from one place, nested by section and key.

    In a ``textual`` layer, values are texts, read as TOML unless the key takes text; the case of keys is ignored.
    """

    origin: str
    values: Mapping[str, Any]
    textual: bool = False


class Value(msgspec.Struct, frozen=True):
    """A value in effect: its dotted key, the value, and its origin."""

    key: str
    value: Any
    origin: str


class Config(msgspec.Struct, frozen=True):
    """The configuration in effect: a struct for each section, and the origin of each key that is not at its default."""

    sections: Mapping[str, msgspec.Struct]
    origins: Mapping[str, str]

    def section(self, name: str, kind: type[T]) -> T:
        """Return a section as the struct it is."""
        found = self.sections[name]
        if not isinstance(found, kind):
            raise TypeError(f"section {name} is a {type(found).__name__}, not a {kind.__name__}")
        return found

    @property
    def broker(self) -> BrokerSettings:
        """The section ``broker``."""
        return self.section("broker", BrokerSettings)

    @property
    def log(self) -> LogSettings:
        """The section ``log``."""
        return self.section("log", LogSettings)

    @property
    def runtime(self) -> RuntimeSettings:
        """The section ``runtime``."""
        return self.section("runtime", RuntimeSettings)

    @property
    def gateway(self) -> GatewaySettings:
        """The section ``gateway``."""
        return self.section("gateway", GatewaySettings)

    @property
    def telemetry(self) -> TelemetrySettings:
        """The section ``telemetry``."""
        return self.section("telemetry", TelemetrySettings)

    def values(self) -> Iterator[Value]:
        """Yield every value in effect, sections in order."""
        for name, settings in self.sections.items():
            for key, value in leaves(msgspec.to_builtins(settings), name):
                yield Value(key, value, self.origins.get(key, DEFAULT_ORIGIN))


RUNNING_SECTIONS: Sections = {
    "broker": BrokerSettings,
    "log": LogSettings,
    "runtime": RuntimeSettings,
    "gateway": GatewaySettings,
    "telemetry": TelemetrySettings,
}
"""The sections about running a set, as against those of actors and effectors."""


def all_sections() -> Sections:
    """Return every section there is: those about the set, of each actor and of each effector. Loads all of them."""
    from actors.ledger import LedgerSettings
    from actors.registry import ACTORS
    from deploy.processes.effector_registry import EFFECTORS

    of_actors = {name: actor.settings_type for name, actor in ACTORS.items()}
    of_effectors = {name: effector.settings_type for name, effector in EFFECTORS.items()}
    return {**RUNNING_SECTIONS, **of_actors, **of_effectors, "ledger": LedgerSettings}


def section_names() -> tuple[str, ...]:
    """Return the names of :func:`all_sections`, and load none: each package of actors has one."""
    packages = (each.name for each in iter_modules(actors.__path__) if each.ispkg and each.name not in actors.SHARED)
    return tuple(dict.fromkeys((*RUNNING_SECTIONS, *sorted(packages))))


def file_layer(path: Path | None, *, wait_s: float = PIPE_WAIT_S) -> Layer | None:
    """Read the TOML file ``path``, or ``neuraxis.toml`` in the working folder when there is one.

    ``wait_s`` are the seconds within which a pipe must be written to its end.

    Raises:
        BadConfiguration: ``path`` is missing, or it, or a file that it names for a text, cannot be read.
    """
    found = path or DEFAULT_FILE
    try:
        values = tomllib.loads(read_bounded(found, wait_s))
    except FileNotFoundError:
        if path is None:
            return None
        raise BadConfiguration(f"there is no configuration file {path}: correct --config, or leave it out") from None
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadConfiguration(f"{found} cannot be read: {getattr(wrong, 'strerror', '') or wrong}") from wrong
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise BadConfiguration(f"{found} is not TOML: {wrong}") from wrong
    except ValueError as wrong:  # Python reads no integer of thousands of digits
        raise BadConfiguration(f"{found} holds a number of thousands of digits: write a smaller one") from wrong
    try:
        return Layer(str(found), with_text_files(values, found.parent, wait_s))
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadConfiguration(f"a file that {found} names cannot be read: {wrong}") from wrong


def model_layer(origin: str, value: str) -> Layer:
    """Return the layer of a choice of language model: ``local``, ``composer``, ``auto``, or an endpoint's URL."""
    choice = value.strip()
    if choice in ("local", "composer", "auto"):
        return Layer(origin, {"llm": {"backend": choice}})
    return Layer(origin, {"llm": {"backend": "openai", "base_url": choice}})


def environment_layers(environment: Mapping[str, str]) -> list[Layer]:
    """Return a layer for each variable ``NEURAXIS_<SECTION>__<KEY>``, sorted, after that of ``NEURAXIS_LLM_URL``.

    Other variables with the prefix are ignored: orchestrators set some, such as ``NEURAXIS_PORT``.

    Raises:
        BadConfiguration: a variable is a misspelt one of ours, so that its value would be ignored, or two set the same.
    """
    for name in sorted(environment):
        if name.startswith(ENVIRONMENT_PREFIX) and "__" not in name and name not in VARIABLES:
            _refuse_misspelt(name)
    _refuse_repeated(environment)
    model = environment.get(MODEL_VARIABLE, "")
    return [model_layer(MODEL_VARIABLE, model)] * bool(model.strip()) + [
        Layer(name, _nested(name.removeprefix(ENVIRONMENT_PREFIX).split("__"), value), textual=True)
        for name, value in sorted(environment.items())
        if name.startswith(ENVIRONMENT_PREFIX) and "__" in name
    ]


def _refuse_misspelt(name: str) -> None:
    if name == CLIENT_KEY_VARIABLE:
        raise BadConfiguration(
            f"{name} is read by clients alone, and a gateway would serve without that key: unset it here, or did you"
            " mean NEURAXIS_API_KEYS?"
        )
    if near := nearest_name(name, VARIABLES, cutoff=0.88):
        raise BadConfiguration(f"{name}: there is no such variable: did you mean {near}?")


def _refuse_repeated(environment: Mapping[str, str]) -> None:
    """Refuse two variables that set the same key in different cases: of their values only one would count."""
    seen: dict[str, str] = {}
    for name in sorted(environment):
        if name.startswith(ENVIRONMENT_PREFIX) and "__" in name:
            key = key_of(name.removeprefix(ENVIRONMENT_PREFIX).replace("__", "."))
            if key in seen:
                raise BadConfiguration(f"{seen[key]} and {name} set the same: keep one of them")
            seen[key] = name


def _refuse_joined(name: str, sections: Sections) -> None:
    """Refuse a variable that joins section and key by one underscore: its value would be ignored."""
    name_after_prefix = name.removeprefix(ENVIRONMENT_PREFIX).lower()
    if not name.startswith(ENVIRONMENT_PREFIX) or "__" in name or name in VARIABLES:
        return
    for section, kind in sections.items():
        key = name_after_prefix.removeprefix(f"{section}_")
        if key != name_after_prefix and key in kind.__struct_fields__:
            intended = f"{ENVIRONMENT_PREFIX}{section}__{key}".upper()
            raise BadConfiguration(f"{name}: there is no such variable: did you mean {intended}?")


def flag_layer(flag: str, key: str, value: str) -> Layer:
    """Return the layer of one flag: ``key`` is dotted, ``value`` is the typed text."""
    return Layer(flag, _nested(key.split("."), value), textual=True)


def assignment_layer(assignment: str) -> Layer:
    """Return the layer of ``SECTION.KEY=VALUE``; raises BadConfiguration when it is not of that form."""
    key, equals, value = assignment.partition("=")
    if not equals or "." not in key:
        raise BadConfiguration(f"--set {assignment!r}: write SECTION.KEY=VALUE, such as router.profile=seed")
    return flag_layer(f"--set {key}", key, value)


def resolve(sections: Sections, layers: Sequence[Layer], *, ignore_others: bool = False) -> Config:
    """Lay ``layers`` over the defaults; later layers win.

    Args:
        sections: The known sections.
        layers: Where values come from.
        ignore_others: Ignore the sections of actors that are not in ``sections``, rather than refuse them.

    Raises:
        BadConfiguration: an unknown section or key, or a value that its key does not take.
    """
    merged, origins = _values_by_section(sections, layers, ignore_others)
    return Config(
        {name: _convert(name, sections[name], layered_values) for name, layered_values in merged.items()}, origins
    )


def overrides(sections: Sections, layers: Sequence[Layer]) -> dict[str, dict[str, Any]]:
    """Return what ``layers`` set, by section, without the defaults; later layers win.

    Raises:
        BadConfiguration: an unknown section or key, or a value that its key does not take beside the defaults.
    """
    resolve(sections, layers)
    merged, _ = _values_by_section(sections, layers, ignore_others=False)
    found: dict[str, dict[str, Any]] = {}
    for name, layered_values in merged.items():
        for _, values in layered_values:
            found[name] = overlaid(found.get(name, {}), values)
    return found


def _values_by_section(
    sections: Sections, layers: Sequence[Layer], ignore_others: bool
) -> tuple[dict[str, list[tuple[Layer, dict[str, Any]]]], dict[str, str]]:
    """Return each section's values, layer by layer, and the origin of each key's last value."""
    merged: dict[str, list[tuple[Layer, dict[str, Any]]]] = {name: [] for name in sections}
    origins: dict[str, str] = {}
    for layer in layers:
        for section_as_written, values in layer.values.items():
            name = section_as_written.lower() if layer.textual else section_as_written
            if name not in sections:
                known = section_names() if ignore_others else sections
                if ignore_others and name in known:
                    continue
                raise BadConfiguration(f"{layer.origin}: there is no section {name!r}: {did_you_mean(name, known)}")
            checked = _check(inspect.type_info(sections[name]), values, name, layer)
            if not isinstance(checked, dict):
                raise BadConfiguration(f"{layer.origin}: {name} is a section: write [{name}] and its keys below")
            merged[name].append((layer, checked))
            origins.update((key, layer.origin) for key, _ in leaves(checked, name))
    return merged, origins


def load(
    sections: Sections,
    *,
    file: Path | None = None,
    environment: Mapping[str, str],
    flags: Sequence[Layer] = (),
    ignore_others: bool = False,
    wait_s: float = PIPE_WAIT_S,
) -> Config:
    """Return the configuration in effect: file, then environment, then flags; raises as :func:`resolve` does.

    ``wait_s`` are the seconds within which a file that is a pipe must be written to its end.
    """
    for name in sorted(environment):
        _refuse_joined(name, sections)
    layer = file_layer(file, wait_s=wait_s)
    layers = [*([layer] if layer else []), *environment_layers(environment), *flags]
    return resolve(sections, layers, ignore_others=ignore_others)


def _nested(path: Sequence[str], value: str) -> dict[str, Any]:
    head, *rest = path
    return {head: _nested(rest, value) if rest else value}


def _check(kind: inspect.Type, value: Any, key: str, layer: Layer) -> Any:
    """Refuse unknown keys, read text as what the key takes, and join the keys of tables into a flat mapping."""
    if not isinstance(value, Mapping):
        return _read(value) if layer.textual and isinstance(value, str) and not _takes_text(kind) else value
    for member in union_members(kind):
        if isinstance(member, inspect.StructType):
            fields = {field.encode_name: field.type for field in member.fields}
            checked = {}
            for key_as_written, inner in value.items():
                name = key_as_written.lower() if layer.textual else key_as_written
                if name not in fields:
                    raise BadConfiguration(f"{layer.origin}: {key} has no key {name!r}: {did_you_mean(name, fields)}")
                checked[name] = _check(fields[name], inner, f"{key}.{name}", layer)
            return checked
        if isinstance(member, inspect.DictType):
            if any(
                isinstance(inner, inspect.StructType | inspect.DictType) for inner in union_members(member.value_type)
            ):
                return {name: _check(member.value_type, inner, f"{key}.{name}", layer) for name, inner in value.items()}
            flat: dict[str, Any] = {}
            for name, inner in leaves(value):
                if name in flat:
                    raise BadConfiguration(f"{layer.origin}: {key}.{name} is set twice: give it one value")
                flat[name] = inner
            return {name: _check(member.value_type, inner, f"{key}.{name}", layer) for name, inner in flat.items()}
    return value


def _takes_text(kind: inspect.Type) -> bool:
    return any(
        isinstance(member, inspect.StrType | inspect.EnumType)
        or (isinstance(member, inspect.LiteralType) and any(isinstance(value, str) for value in member.values))
        for member in union_members(kind)
    )


def _read(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text  # the conversion then says what was expected instead
    return found["value"] if len(found) == 1 else text  # a second line would be another key, and be ignored


def _convert(
    name: str, kind: type[msgspec.Struct], layered_values: Sequence[tuple[Layer, dict[str, Any]]]
) -> msgspec.Struct:
    try:
        return _checked(_values_of(kind, layered_values), kind)
    except msgspec.ValidationError as wrong:
        # Settings can contradict each other, so only the merged values are checked. The first layer with which the
        # error appears is named as its origin.
        layers_needed = next(
            count
            for count in range(1, len(layered_values) + 1)
            if _conversion_error(kind, _values_of(kind, layered_values[:count])) == str(wrong)
        )
        text = error_of_section(inspect.type_info(kind), name, str(wrong))
        fault = with_key(
            text, str(wrong), _values_of(kind, layered_values), lambda values: _conversion_error(kind, values)
        )
        origin = layered_values[layers_needed - 1][0].origin
        # The origin of a flag that sets one key ends with that key already.
        message = fault.partition(": ")[2] if origin.endswith(f" {fault.partition(': ')[0]}") else fault
        raise BadConfiguration(f"{origin}: {message}") from wrong


def _checked(values: Mapping[str, Any], kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Return a section from its values; raises msgspec.ValidationError.

    Settings are recorded, hashed and kept in snapshots as numbers of 64 bits, and msgspec takes longer ones.
    """
    found: msgspec.Struct = msgspec.convert(values, kind)
    for path, value in leaves(msgspec.to_builtins(found), "$"):
        if isinstance(value, int) and not _LEAST_INTEGER <= value <= _LARGEST_INTEGER:
            raise msgspec.ValidationError(f"Integer value out of range: write a smaller one - at `{path}`")
    if wrong := unreachable_setting(found):
        raise msgspec.ValidationError(wrong)
    return found


def _values_of(kind: type[msgspec.Struct], layered_values: Sequence[tuple[Layer, dict[str, Any]]]) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(kind())
    for _, of_layer in layered_values:
        values = overlaid(values, of_layer)
    return values


def _conversion_error(kind: type[msgspec.Struct], values: Mapping[str, Any]) -> str:
    try:
        _checked(values, kind)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return ""
