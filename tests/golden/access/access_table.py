"""Which of the requests are refused, with which rules: how the table is made, of any node that can be asked.

A row is an outcome: which errors of access a reply has, where and in which words, and which of the resources' names it
shows. Other errors are not in it: they depend on what a node holds, and come after access was granted.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ottla.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResource, PatternType
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.message import WireStruct
from ottla.wire.messages import CreateAclsRequest
from tests.golden.access.access_requests import MINE, NAMES, ON_BROKERS, ON_CONTROLLERS, Make, TopicIds

FACTS = Path(__file__).parent / "access-kafka-4.3.1.json"
PRINCIPAL = "User:bob"
_OF_A_CONNECTION = re.compile(r"Request .* needs")
REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)

Right = tuple[AclResource, AclOperation]
_R, _O = AclResource, AclOperation

ON_TOPICS = (_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)
ON_GROUPS = (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)
ON_CLUSTER = (
    _O.CREATE, _O.ALTER, _O.DELETE, _O.DESCRIBE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS,
    _O.IDEMPOTENT_WRITE,
)  # fmt: skip

RULES: tuple[tuple[Right, ...], ...] = (
    (),
    *(((_R.TOPIC, one),) for one in ON_TOPICS),
    *(((_R.GROUP, one),) for one in ON_GROUPS),
    *(((_R.CLUSTER, one),) for one in ON_CLUSTER),
    *(((_R.TRANSACTIONAL_ID, one),) for one in (_O.WRITE, _O.DESCRIBE)),
    ((_R.GROUP, _O.READ), (_R.TOPIC, _O.READ)),
    ((_R.GROUP, _O.DESCRIBE), (_R.TOPIC, _O.DESCRIBE)),
    ((_R.GROUP, _O.DELETE), (_R.TOPIC, _O.READ)),
    ((_R.TRANSACTIONAL_ID, _O.WRITE), (_R.TOPIC, _O.WRITE)),
    ((_R.TRANSACTIONAL_ID, _O.WRITE), (_R.GROUP, _O.READ)),
    ((_R.TRANSACTIONAL_ID, _O.WRITE), (_R.GROUP, _O.READ), (_R.TOPIC, _O.READ)),
    ((_R.TOPIC, _O.CREATE), (_R.TOPIC, _O.DESCRIBE_CONFIGS)),
    ((_R.TOPIC, _O.DELETE), (_R.CLUSTER, _O.CLUSTER_ACTION)),
)
"""Each right alone, and those that some request needs together. Names begin with `mine`."""


class Asked(NamedTuple):
    """A request of the table, and where it is asked."""

    name: str
    to_controller: bool
    key: ApiKey
    make: Make

    @property
    def title(self) -> str:
        return f"{'controller' if self.to_controller else 'broker'}: {self.name}"


def all_asked() -> Iterator[Asked]:
    for requests, to_controller in ((ON_BROKERS, False), (ON_CONTROLLERS, True)):
        for name, (key, make) in requests.items():
            yield Asked(name, to_controller, key, make)


def rules_text(rules: Iterable[Right]) -> str:
    return " + ".join(f"{resource.name} {operation.name}" for resource, operation in rules) or "nothing"


def creations(rules: Iterable[Right], principal: str = PRINCIPAL) -> list[CreateAclsRequest.AclCreation]:
    return [
        CreateAclsRequest.AclCreation(
            resource_type=resource,
            resource_name=CLUSTER_NAME if resource is AclResource.CLUSTER else MINE,
            resource_pattern_type=PatternType.LITERAL if resource is AclResource.CLUSTER else PatternType.PREFIXED,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=AclPermission.ALLOW,
        )
        for resource, operation in rules
    ]


def outcome(reply: Any, ids: TopicIds) -> list[str]:
    """Refusals with their places, names that are shown, and operations that are told; or what there was instead."""
    if not isinstance(reply, WireStruct):
        return [str(reply)]
    by_id = {id: name for name, id in ids.items()}
    return sorted(set(_found(reply, "", by_id)))


def _found(part: Any, path: str, by_id: dict[Any, str]) -> Iterator[str]:
    if isinstance(part, WireStruct):
        label = next((by_id[part.topic_id] for _ in "." if getattr(part, "topic_id", None) in by_id), "")
        for name in part.__slots__:
            value = getattr(part, name)
            if name.endswith("error_code") and value in REFUSALS:
                yield f"{path}[{_name_of(part) or label}].{name} = {ErrorCode(value).name}{_said(part)}"
            elif name.endswith("authorized_operations") and value != -(1 << 31):
                yield f"{path}[{_name_of(part)}].{name} = {value}"
            elif isinstance(value, str) and value in NAMES:
                yield f"{path}.{name} = {value}"
            elif name != "unknown_tags":
                yield from _found(value, f"{path}.{name}", by_id)
    elif isinstance(part, list | tuple):
        for item in part:
            if isinstance(item, str) and item in NAMES:
                yield f"{path} = {item}"
            else:
                yield from _found(item, path, by_id)


def _said(part: Any) -> str:
    """The words of a refusal, without what is of one connection alone in them."""
    words = getattr(part, "error_message", None)
    return f": {_OF_A_CONNECTION.sub('Request … needs', words)}" if words else ""


def _name_of(part: Any) -> str:
    for name in ("name", "topic", "topic_name", "group_id", "key", "transactional_id", "resource_name"):
        value = getattr(part, name, None)
        if isinstance(value, str) and value:
            return value
    return ""


def made_table(
    set_rules: Callable[[tuple[Right, ...]], None],
    send: Callable[[Any, int, bool], Any],
    ids: TopicIds,
    asked: Iterable[Asked] | None = None,
) -> dict[str, dict[str, dict[str, list[str]]]]:
    """By request and rules: versions to outcomes."""
    rows: dict[str, dict[str, dict[str, list[str]]]] = {}
    wanted = list(asked or all_asked())
    for rules in RULES:
        set_rules(rules)
        for one in wanted:
            outcomes: dict[int, list[str]] = {}
            for version in api(one.key).stable_versions:
                if one.key is ApiKey.PRODUCE and version < 3:
                    continue
                request = one.make(version, ids)
                if request is not None:
                    outcomes[version] = outcome(send(request, version, one.to_controller), ids)
            rows.setdefault(one.title, {})[rules_text(rules)] = _by_versions(outcomes)
    return rows


def _by_versions(outcomes: dict[int, list[str]]) -> dict[str, list[str]]:
    """Versions that follow each other and have the same outcome are one row."""
    found: list[tuple[int, int, list[str]]] = []
    for version, what in outcomes.items():
        if found and found[-1][2] == what:
            found[-1] = found[-1][0], version, what
        else:
            found.append((version, version, what))
    return {f"{first}-{last}": what for first, last, what in found}


def read_facts() -> dict[str, dict[str, dict[str, list[str]]]]:
    """The committed table. Rules with the same outcomes share a row there, and outcomes are written once."""
    stored = json.loads(FACTS.read_text())
    return {title: {rules: row["outcomes"] for row in rows for rules in row["rules"]} for title, rows in stored.items()}


def write_facts(table: dict[str, dict[str, dict[str, list[str]]]]) -> None:
    stored: dict[str, list[dict[str, Any]]] = {}
    for title, by_rules in table.items():
        rows = stored[title] = []
        for rules, outcomes in by_rules.items():
            same = next((row for row in rows if row["outcomes"] == outcomes), None)
            if same is None:
                rows.append({"rules": [rules], "outcomes": outcomes})
            else:
                same["rules"].append(rules)
    FACTS.write_text(json.dumps(stored, indent=1) + "\n")
