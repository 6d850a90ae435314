"""Bodies and queries of requests, read strictly. What cannot be read is refused with 400, where Kafka Connect says 500
with the text of a Java exception."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote

from ottla.connect.worker.decisions import OffsetChange
from ottla.connect.worker.records import SURROGATE, TargetState
from ottla.connect.worker.refusals import bad_request

_INITIAL: Final = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}
_MEMBERS: Final = ("name", "config", "initial_state")
_FORBIDDEN: Final = {
    "2f": "Ambiguous URI path separator",
    "25": "Ambiguous URI path encoding",
    "00": "Bad Request",
}


class NewConnector(NamedTuple):
    name: str
    config: dict[str, str | None]
    target: TargetState | None


def path_parts(path: str) -> list[str]:
    """Decoded, without a slash at the end. Raises `Refused`."""
    for place in range(len(path)):
        if path[place] == "%" and (problem := _FORBIDDEN.get(path[place + 1 : place + 3].lower())):
            raise bad_request(problem)
    try:
        return [unquote(part, errors="strict") for part in path.strip("/").split("/")]
    except UnicodeDecodeError:
        raise bad_request("Bad Request") from None


def query_of(target: str) -> Mapping[str, list[str]]:
    return parse_qs(target.partition("?")[2], keep_blank_values=True)


def flag_of(query: Mapping[str, list[str]], name: str, default: bool = False) -> bool:
    """As Java reads it: `true` in any case, and everything else is false."""
    given = query.get(name)
    return default if not given else given[0].lower() == "true"


def json_of(body: bytes) -> Any:
    """Raises `Refused`."""
    if not body.strip():
        raise bad_request("The request has no body; it must be JSON")
    try:
        found = json.loads(body, parse_float=_finite, parse_constant=_finite)
        if SURROGATE.search(body):  # Half a character, which no topic and no reply could have.
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise bad_request("The body of the request has half of a surrogate pair, which is no character") from None
    except (ValueError, RecursionError) as problem:
        raise bad_request(f"The body of the request is not JSON: {problem}") from None
    return found


def _finite(text: str) -> float:
    """JSON has no NaN and no Infinity: who reads a topic with them cannot read that record."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number of JSON's, or beyond them")
    return number


def _object(body: bytes) -> dict[str, Any]:
    found = json_of(body)
    if not isinstance(found, dict):
        raise bad_request("The body of the request must be a JSON object")
    return found


def config_of(found: Any) -> dict[str, str | None]:
    """Numbers and booleans become text, as Jackson has them. Raises `Refused`."""
    if not isinstance(found, dict):
        raise bad_request("A connector's configuration must be a JSON object of texts")
    config: dict[str, str | None] = {}
    for key, value in found.items():
        if isinstance(value, dict | list):
            raise bad_request(f"The value of {key} must be a text; it is a JSON {_kind(value)}")
        if value is None or isinstance(value, str):
            config[key] = value
        else:
            config[key] = json.dumps(value)
    return config


def _kind(value: Any) -> str:
    return "object" if isinstance(value, dict) else "array"


def read_config(body: bytes) -> dict[str, str | None]:
    return config_of(_object(body))


def named(name: str, config: dict[str, str | None]) -> dict[str, str | None]:
    """With the connector's name in it. Raises `Refused` if another one is."""
    included = config.get("name")
    if included is None:
        return {**{key: value for key, value in config.items() if key != "name"}, "name": name}
    if included != name:
        raise bad_request(f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})")
    return config


def read_new_connector(body: bytes) -> NewConnector:
    """Raises `Refused`."""
    found = _object(body)
    for member in found:
        if member not in _MEMBERS:
            raise bad_request(f'Unrecognized field "{member}"; those that there are: {", ".join(_MEMBERS)}')
    name = found.get("name")
    if name is not None and not isinstance(name, str):
        raise bad_request("The name of a connector must be a text")
    if found.get("config") is None:
        raise bad_request("The request has no config")
    shown = (name or "").strip()
    return NewConnector(shown, named(shown, config_of(found["config"])), _target(found.get("initial_state")))


def _target(given: Any) -> TargetState | None:
    if given is None:
        return None
    target = _INITIAL.get(given.upper()) if isinstance(given, str) else None
    if target is None:
        raise bad_request(f"initial_state is {given!r}; it must be one of {', '.join(_INITIAL)}")
    return target


def read_offsets(body: bytes) -> list[OffsetChange]:
    """Raises `Refused`."""
    found = _object(body)
    given = found.get("offsets")
    if not given:
        raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(given, list):
        raise bad_request("offsets must be a JSON array")
    return [_offset(one) for one in given]


def _offset(given: Any) -> OffsetChange:
    if not isinstance(given, dict):
        raise bad_request("Each of offsets must be a JSON object with partition and offset")
    partition, offset = given.get("partition"), given.get("offset")
    if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
        raise bad_request("partition and offset must be JSON objects, or null")
    return OffsetChange(partition, offset)


def read_level(body: bytes) -> str | None:
    level = _object(body).get("level")
    return level if isinstance(level, str) else None
