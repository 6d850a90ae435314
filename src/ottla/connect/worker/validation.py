"""A connector's configuration held against its settings, as Kafka Connect's `validate` shows it.

Every setting that counts for the connector is a row: those that all have, those of sources or sinks, those of the
transforms and predicates that it names, its own, and those of converters that it brings. Each has its value and what is
wrong with it, in Kafka's words. A connector's own look at the outside world (is the database there?) comes last, and
only if nothing else is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.config.bounds import Items, NotEmpty, OneOf
from ottla.config.values import HIDDEN, Type, Value, parse_value, value_text
from ottla.connect.class_names import class_name_of
from ottla.connect.converters import by_name as converters
from ottla.connect.converters.by_name import aliases
from ottla.connect.options import InvalidOption
from ottla.connect.transforms import by_name as transforms
from ottla.connect.worker.connector_settings import (
    COMMON,
    SINK,
    SOURCE,
    TYPES,
    KafkaRow,
    NoControls,
    NotNull,
    converter_rows,
    row_of,
)
from ottla.connect.worker.plugins import HEADER_CONVERTER, ConnectorPlugin, Plugins
from ottla.connect.worker.refusals import Refused, bad_request
from ottla.connect.worker.secrets import is_named_as_secret

_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_EXPECTED: Final = {
    Type.BOOLEAN: "Expected value to be either true or false",
    Type.SHORT: "Not a number of type SHORT",
    Type.INT: "Not a number of type INT",
    Type.LONG: "Not a number of type LONG",
    Type.DOUBLE: "Not a number of type DOUBLE",
}


class Checked(NamedTuple):
    """A setting, its value, and what is wrong with it."""

    row: KafkaRow
    value: str | None
    errors: list[str]
    recommended: Sequence[str] = ()
    visible: bool = True


class Report(NamedTuple):
    name: str
    plugin: ConnectorPlugin
    groups: list[str]
    checked: list[Checked]

    @property
    def error_count(self) -> int:
        return sum(len(one.errors) for one in self.checked)


def require_valid(report: Report) -> None:
    """Raises `Refused` with all that is wrong."""
    errors = [error for one in report.checked for error in one.errors]
    if errors:
        listing = "\n".join(errors)
        raise bad_request(
            f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{listing}\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`"
        )


def find_plugin(plugins: Plugins, config: Mapping[str, str | None]) -> ConnectorPlugin:
    """The connector that a configuration is for. Raises `Refused`."""
    class_name = class_name_of(config)
    if class_name is None:
        shown = ", ".join(f"{key}={_shown(key, value)}" for key, value in config.items())
        raise bad_request(f"Connector config {{{shown}}} contains no connector type")
    try:
        return plugins.find(class_name)
    except InvalidOption as problem:
        raise bad_request(str(problem)) from None


def _shown(key: str, value: str | None) -> str:
    return "null" if value is None else HIDDEN if is_named_as_secret(key) else value


def validate(
    plugins: Plugins,
    worker: Mapping[str, str],
    config: Mapping[str, str | None],
    version: str,
    *,
    asks_world: bool = True,
) -> Report:
    """`worker` has the defaults of converters. Config providers' values are put in already. Raises `Refused`."""
    plugin = find_plugin(plugins, config)
    try:
        loaded = plugin.load()
    except InvalidOption as problem:
        raise bad_request(str(problem)) from None
    given = {key: value for key, value in config.items() if value is not None}
    is_source = plugin.type == "source"
    checked = [_common(row, worker, given, plugin, version) for row in (*COMMON, *(SOURCE if is_source else SINK))]
    checked += _parts("transforms", "Transformation", transforms.TRANSFORMS, given, version)
    checked += _parts("predicates", "Predicate", transforms.PREDICATES, given, version)
    checked += (_check(row_of(setting), given) for setting in loaded.settings if not _is_common(setting.name))
    checked += _converter_options(given)
    if not is_source:
        _check_topics(checked, given)
    if not any(one.errors for one in checked) and asks_world:
        _add(checked, loaded.validate(given))
    groups = list(dict.fromkeys(one.row.group for one in checked if one.row.group is not None))
    return Report(str(config["connector.class"]), plugin, groups, checked)


def _is_common(name: str) -> bool:
    return any(name == row.name for row in (*COMMON, *SOURCE, *SINK))


def _add(checked: list[Checked], problems: Iterable[tuple[str, str]]) -> None:
    """What a connector says of its settings."""
    by_name = {one.row.name: one for one in checked}
    for name, problem in problems:
        if name not in by_name:
            row = KafkaRow(name, "STRING", None, "MEDIUM", None, -1, "NONE", name, "")
            by_name[name] = Checked(row, None, [])
            checked.append(by_name[name])
        by_name[name].errors.append(problem)


# --- one setting ---


def _check(row: KafkaRow, given: Mapping[str, str], *, name_in_errors: str | None = None) -> Checked:
    name = name_in_errors or row.name
    text = given.get(row.name)
    if text is None:
        if row.is_required:
            return Checked(row, None, [f'Missing required configuration "{row.name}" which has no default value.'])
        return Checked(row, row.default, [])
    type = TYPES[row.type]
    try:
        value = parse_value(type, text)
    except ValueError as expected:
        errors = [f"Invalid value {text} for configuration {name}: {_EXPECTED.get(type, str(expected))}"]
        if isinstance(row.bound, NotNull):
            errors.append(f"Invalid value null for configuration {name}: Value must be non-null")
        return Checked(row, None, errors)
    error = _bound_error(row, name, value)
    shown = HIDDEN if row.type == "PASSWORD" else value_text(value)
    return Checked(row, shown, [] if error is None else [error])


def _bound_error(row: KafkaRow, name: str, value: Value) -> str | None:
    bound = row.bound
    if bound is None or bound.allows(value):
        return None
    if isinstance(bound, NoControls):
        reason = "String may not be empty" if not str(value).strip() else "String may not contain control sequences"
    elif isinstance(bound, NotNull):
        reason = f"Value must be at least {bound.low}"
    elif isinstance(bound, OneOf):
        case = " (case insensitive)" if bound.any_case else ""
        reason = f"String must be one of{case}: {', '.join(bound.names)}"
    elif isinstance(bound, NotEmpty):
        reason = "String must be non-empty"
    elif isinstance(bound, Items):
        return f"Configuration '{name}' values must not be empty."
    else:
        reason = f"it must be {bound}"
    shown = HIDDEN if row.type == "PASSWORD" else value_text(value)
    return f"Invalid value {shown} for configuration {name}: {reason}"


# --- what all connectors have ---


def _common(
    row: KafkaRow, worker: Mapping[str, str], given: Mapping[str, str], plugin: ConnectorPlugin, version: str
) -> Checked:
    if row.name == "connector.plugin.version":
        return _version_row(row, plugin.version, is_known=True)
    converter = row.name.removesuffix(".plugin.version")
    if converter in _CONVERTERS:
        default = worker.get(converter) or (HEADER_CONVERTER if converter == "header.converter" else None)
        found = _converter(given.get(converter, default or ""))
        if converter != row.name:
            return _version_row(row, version, is_known=found is not None)
        checked = _check(row._replace(default=default), given)
        text = given.get(converter)
        errors = [] if text is None or found else [_no_class(text, row.name)]
        return checked._replace(
            value=found if text is None or found else None, errors=errors, recommended=_converter_names(converter)
        )
    return _check(row, given)


def _version_row(row: KafkaRow, version: str | None, *, is_known: bool) -> Checked:
    if not is_known:
        return Checked(row, None, [], (), visible=False)
    return Checked(row._replace(default=version), version, [], (version,) if version else ())


def _no_class(text: str, name: str) -> str:
    return f"Invalid value {text} for configuration {name}: Class {text} could not be found."


def _converter_names(setting: str) -> list[str]:
    names = [kind.class_name for kind in converters.KINDS]
    return sorted([*names, HEADER_CONVERTER] if setting == "header.converter" else names)


def _converter(name: str) -> str | None:
    """The class name of a converter, by that or an alias."""
    wanted = name.strip()
    for class_name in _converter_names("header.converter"):
        if wanted == class_name or wanted in aliases(class_name):
            return class_name
    return None


def _converter_options(given: Mapping[str, str]) -> Iterable[Checked]:
    """Options of converters that the configuration brings itself."""
    for setting in _CONVERTERS:
        class_name = _converter(given.get(setting, ""))
        if class_name is None:
            continue
        for kind in converters.KINDS:
            if kind.class_name == class_name:
                purpose = {f"{setting}.converter.type": setting.partition(".")[0]}
                for row in converter_rows(kind.options):
                    named = row._replace(name=f"{setting}.{row.name}")
                    yield _check(named, {**given, **purpose}, name_in_errors=row.name)


# --- transforms and predicates ---


def _parts(
    key: str, word: str, kinds: Sequence[transforms.Kind], given: Mapping[str, str], version: str
) -> Iterable[Checked]:
    """Of `transforms` and of `predicates`: the type of each name, and its options."""
    singular = "Transformation" if key == "transforms" else "Predicate"
    for alias in dict.fromkeys(filter(None, (one.strip() for one in given.get(key, "").split(",")))):
        prefix, group = f"{key}.{alias}.", f"{key.capitalize()}: {alias}"
        text = given.get(f"{prefix}type")
        kind = None if text is None else _kind(kinds, text.strip())
        what = f"Which {word.lower()} `{alias}` is: its class name."
        row = KafkaRow(
            f"{prefix}type", "CLASS", None, "HIGH", group, 0, "LONG", f"{singular} type for {alias}", what, None, True
        )
        errors = (
            [] if kind is not None else [f'Missing required configuration "{row.name}" which has no default value.']
        )
        if text is not None and kind is None:
            errors = [_no_class(text, row.name)]
        names = sorted(one.class_name for one in kinds)
        yield Checked(row, None if kind is None else kind.class_name, errors, names)
        what = f"Which version of it `{alias}` is."
        row = KafkaRow(
            f"{prefix}plugin.version", "STRING", None, "HIGH", group, 1, "LONG", f"{singular} version for {alias}", what
        )
        if kind is None:
            yield Checked(row, None, [])
            continue
        yield _version_row(row, version, is_known=True)
        options = [row_of(option) for option in kind.options]
        if key == "transforms":
            options += _EVERY_TRANSFORM
        problem = _made(kind, prefix, given)
        for order, option in enumerate(options, 2):
            row = option._replace(name=prefix + option.name, group=group, order=order, display_name=option.name)
            checked = _check(row, given)
            if problem is not None and not checked.errors and f"configuration {option.name}:" in problem:
                checked.errors.append(problem)
            yield checked


_EVERY_TRANSFORM: Final = (
    KafkaRow(
        "negate",
        "BOOLEAN",
        "false",
        "MEDIUM",
        None,
        -1,
        "NONE",
        "negate",
        "Whether the transform is for records that the predicate does not hold for.",
    ),
    KafkaRow(
        "predicate",
        "STRING",
        None,
        "MEDIUM",
        None,
        -1,
        "NONE",
        "predicate",
        "A predicate: the transform is for records that it holds for.",
    ),
)


def _kind(kinds: Sequence[transforms.Kind], name: str) -> transforms.Kind | None:
    for kind in kinds:
        if name in (kind.class_name, kind.class_name.rpartition(".")[2]):
            return kind
    return None


def _made(kind: transforms.Kind, prefix: str, given: Mapping[str, str]) -> str | None:
    """What is wrong beyond types and bounds: a pattern that cannot be read. None if it can be made."""
    options: dict[str, Any] = {
        key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)
    }
    try:
        transforms._made((kind,), kind.class_name, options)
    except InvalidOption as problem:
        return str(problem)
    return None


# --- topics of sinks ---


def _check_topics(checked: list[Checked], given: Mapping[str, str]) -> None:
    by_name = {one.row.name: one for one in checked}
    topics = [one.strip() for one in given.get("topics", "").split(",") if one.strip()]
    regex = given.get("topics.regex", "").strip()
    dead_letters = given.get("errors.deadletterqueue.topic.name", "").strip()
    both = "topics and topics.regex are mutually exclusive options, but both are set."
    neither = "Must configure one of topics or topics.regex"
    if topics and regex:
        by_name["topics"].errors.append(both)
        by_name["topics.regex"].errors.append(both)
    elif not topics and not regex:
        by_name["topics"].errors.append(neither)
        by_name["topics.regex"].errors.append(neither)
    if dead_letters and dead_letters in topics:
        by_name["topics"].errors.append(
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
            f"('topics=[{', '.join(topics)}]') consumed by the connector"
        )


def wrong_class(plugin_name: str, config: Mapping[str, str | None]) -> Refused | None:
    """`validate` names the class twice, in the path and in the body: they must be the same, or the body's short."""
    included = config.get("connector.class")
    if included is None or plugin_name == included or included.endswith(f".{plugin_name}"):
        return None
    simple = included.rpartition(".")[2]
    if plugin_name in (simple, simple.removesuffix("Connector")):
        return None
    return bad_request(f"Included connector type {included} does not match request type {plugin_name}")
