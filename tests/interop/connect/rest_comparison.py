"""Asks Kafka Connect and ours the same, in the same order, and says where they differ.

Masked: which worker it was, Java's traces, the words of documentation, and the classes that each has. Members of
objects have no order, nor has the list of connectors.
"""

import re
import time
from typing import Any

from tests.interop.connect.rest_script import Call, Settled
from tests.unit.connect.worker.worker_in_a_thread import Reply, ask

WAIT_S = 60.0
_PATIENCE = 5
_CLASSES = re.compile(r"(available connectors are: ).*", re.DOTALL)
_MASKED = ("worker_id", "trace", "documentation", "commit", "recommended_values")


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "…" if key in _MASKED else masked(one) for key, one in value.items()}
    if isinstance(value, list):
        shown = [masked(one) for one in value]
        return sorted(shown) if shown and all(isinstance(one, str) for one in shown) else shown
    return _CLASSES.sub(r"\1…", value) if isinstance(value, str) else value


def state_of(base: str, name: str) -> Settled | None:
    reply = ask(base, "GET", f"/connectors/{name}/status")
    if reply.status != 200:
        return None
    tasks = tuple(task["state"] for task in reply.body["tasks"])
    return Settled(name, reply.body["connector"]["state"], tasks)


def settle(base: str, wanted: Settled) -> None:
    """Seen twice: a restart is RUNNING before it begins, too."""
    ends_s = time.monotonic() + WAIT_S
    seen = 0
    while seen < 2:
        seen = seen + 1 if state_of(base, wanted.name) == wanted else 0
        assert time.monotonic() < ends_s, f"{base} has {state_of(base, wanted.name)}, not {wanted}"
        time.sleep(0.4)


def asked(base: str, call: Call) -> Reply:
    """A rebalance of Kafka Connect's is waited for."""
    for _ in range(_PATIENCE):
        reply = ask(base, call.method, call.path, call.body, call.headers)
        if reply.status != 409 or "rebalance" not in str(reply.body):
            break
        time.sleep(1)
    return reply


def of_validation(body: Any) -> Any:
    """Settings by name: the order of those that are nobody's in particular is that of a hash table."""
    if isinstance(body, dict) and "configs" in body:
        return {**body, "configs": {one["definition"]["name"]: one for one in body["configs"]}}
    return body


def difference(call: Call, theirs: Reply, ours: Reply) -> str | None:
    if call.ours is not None:
        if ours.status != call.ours:
            return f"ours is {ours.status} {ours.body}, and should be {call.ours}: {call.why}"
        if isinstance(ours.body, dict) and set(ours.body) != {"error_code", "message"}:
            return f"ours is no error: {ours.body}"
        return None
    if theirs.status != ours.status:
        return f"theirs {theirs.status} {theirs.body}\n  ours {ours.status} {ours.body}"
    theirs_body, ours_body = of_validation(masked(theirs.body)), of_validation(masked(ours.body))
    if theirs_body == ours_body:
        return None
    return f"theirs {theirs_body}\n  ours {ours_body}\n  {_where(theirs_body, ours_body)}"


def _where(theirs: Any, ours: Any, path: str = "") -> str:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        parts = [
            _where(theirs.get(key, "(absent)"), ours.get(key, "(absent)"), f"{path}.{key}")
            for key in {**theirs, **ours}
            if theirs.get(key, "(absent)") != ours.get(key, "(absent)")
        ]
        return "\n  ".join(parts)
    return f"{path}: theirs {theirs!r}, ours {ours!r}"


def differences(theirs: str, ours: str, script: list[Call | Settled]) -> list[str]:
    found: list[str] = []
    for step in script:
        if isinstance(step, Settled):
            settle(theirs, step)
            settle(ours, step)
            continue
        problem = difference(step, asked(theirs, step), asked(ours, step))
        if problem is not None:
            found.append(f"{step.method} {step.path} {step.body or ''}\n  {problem}")
    return found
