"""What can be asked of a node with faults, by name. The Python front (`ottla.testing.Broker`) has the same names."""

import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.apis.table import APIS
from ottla.node.faults.fault_kinds import (
    EVERY_API,
    DelayedRequests,
    DroppedConnections,
    Effect,
    FailedRequests,
    RequestFault,
    ThrottledRequests,
    WhichRequests,
)
from ottla.node.faults.named_topics import named_topics
from ottla.node.faults.parameters import Parameters, WrongCommand, nearest
from ottla.wire.apis import all_apis, api
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.node.faults.node_faults import NodeFaults

Reply = Mapping[str, object]
_EFFECTS: Final = ("before", "after")
_DONE: Final[Reply] = {}


class NotNow(WrongCommand):
    """The node cannot do it in the state that it is in: it is down, or has no such group."""


class Commands:
    """Carries commands out, on the loop's thread."""

    def __init__(self, faults: "NodeFaults") -> None:
        self._faults = faults
        self._table: dict[str, Callable[[Parameters], Reply | Awaitable[Reply]]] = {
            "fail_next": self._fail_next,
            "drop_connection": self._drop_connection,
            "delay": self._delay,
            "throttle": self._throttle,
            "faults": self._list,
            "clear_faults": self._clear,
            "pause": self._pause,
            "resume": self._resume,
            "restart": self._restart,
            "kill": self._kill,
            "move_coordinator": self._move_coordinator,
            "expire_member": self._expire_member,
            "fill_disk": self._fill_disk,
            "free_disk": self._free_disk,
            "advance_time": self._advance_time,
        }

    def find(self, name: str) -> Callable[[Parameters], Reply | Awaitable[Reply]]:
        found = self._table.get(name)
        if found is None:
            raise WrongCommand(f"there is no command {name!r}; there are {', '.join(self._table)}")
        return found

    # Requests

    def _fail_next(self, given: Parameters) -> Reply:
        error, effect = _error(given.text("error")), _effect(given)
        return self._add(FailedRequests(_requests(given), error, effect), given)

    def _drop_connection(self, given: Parameters) -> Reply:
        effect = _effect(given)
        return self._add(DroppedConnections(_requests(given), effect), given)

    def _delay(self, given: Parameters) -> Reply:
        delay_ms, effect = given.integer("ms"), _effect(given)
        return self._add(DelayedRequests(_requests(given, default_times=None), delay_ms, effect), given)

    def _throttle(self, given: Parameters) -> Reply:
        throttle_ms = given.integer("ms")
        return self._add(ThrottledRequests(_requests(given), throttle_ms), given)

    def _add(self, fault: RequestFault, given: Parameters) -> Reply:
        given.finish()
        self._faults.requests.add(fault)
        return fault.described()

    def _list(self, given: Parameters) -> Reply:
        given.finish()
        requests = self._faults.requests
        return {
            "faults": [fault.described() for fault in requests.faults.values()],
            "is_paused": requests.is_paused,
            "is_disk_full": self._faults.disk.is_full,
        }

    def _clear(self, given: Parameters) -> Reply:
        given.finish()
        self._faults.clear()
        return _DONE

    # The node

    def _pause(self, given: Parameters) -> Reply:
        given.finish()
        self._faults.requests.pause()
        return _DONE

    def _resume(self, given: Parameters) -> Reply:
        given.finish()
        self._faults.requests.resume()
        return _DONE

    async def _restart(self, given: Parameters) -> Reply:
        clean, down_ms = given.flag("clean", True), given.integer("down_ms", 0, least=0)
        given.finish()
        await self._faults.restart(clean=clean, down_ms=down_ms)
        return _DONE

    def _kill(self, given: Parameters) -> Reply:
        given.finish()
        os.kill(os.getpid(), signal.SIGKILL)
        return _DONE

    def _fill_disk(self, given: Parameters) -> Reply:
        given.finish()
        self._faults.disk.is_full = True
        return _DONE

    def _free_disk(self, given: Parameters) -> Reply:
        given.finish()
        self._faults.disk.is_full = False
        return _DONE

    def _advance_time(self, given: Parameters) -> Reply:
        by_ms = given.integer("ms")
        given.finish()
        self._faults.timers.advance(by_ms / 1000)
        return {"now_ms": self._faults.clock.now_ms()}

    # Coordinators

    def _move_coordinator(self, given: Parameters) -> Reply:
        group, transactional_id = given.maybe_text("group"), given.maybe_text("transactional_id")
        given.finish()
        coordinators = self._faults.coordinators
        if group is not None and transactional_id is None:
            is_moved = coordinators.move_group(group)
        elif transactional_id is not None and group is None:
            is_moved = coordinators.move_transaction(transactional_id)
        else:
            raise WrongCommand("a coordinator moves for a group or for a transactional_id: give one of them")
        if not is_moved:
            raise NotNow("nobody has asked for that coordinator yet: there is none to move")
        return _DONE

    def _expire_member(self, given: Parameters) -> Reply:
        group, member_id = given.text("group"), given.maybe_text("member_id")
        given.finish()
        members = self._faults.coordinators.expire_members(group, member_id)
        if not members:
            raise NotNow(f"group {group} has no {f'member {member_id}' if member_id else 'members'}")
        return {"members": members}


def _effect(given: Parameters) -> Effect:
    return "after" if given.choice("effect", _EFFECTS, "before") == "after" else "before"


def _requests(given: Parameters, *, default_times: int | None = 1) -> WhichRequests:
    which = WhichRequests(
        api_key=_api_key(given.text("api")),
        times=given.maybe_integer("times", default_times),
        topic=given.maybe_text("topic"),
        client_id=given.maybe_text("client_id"),
    )
    if which.topic is not None and named_topics(which.api_key) is None:
        having = ", ".join(api(key).name for key, row in APIS.items() if row.topics is not None)
        raise WrongCommand(f"requests of that API are about no topic; those of {having} are")
    return which


def _api_key(name: str) -> int:
    if name == "*":
        return EVERY_API
    served = {one.name.lower(): one for one in all_apis().values() if "broker" in one.listeners}
    found = served.get(name.lower())
    if found is None:
        raise WrongCommand(f"there is no API {name}{nearest(name, (one.name for one in served.values()))}")
    return found.key


def _error(name: str) -> ErrorCode:
    try:
        error = ErrorCode[name.upper()]
    except KeyError:
        raise WrongCommand(f"there is no error {name}{nearest(name, ErrorCode.__members__)}") from None
    if error is ErrorCode.NONE:
        raise WrongCommand("NONE is not an error")
    return error
