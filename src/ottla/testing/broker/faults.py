"""The faults that a test can ask a broker for. Each method is one command of the node's control port.

`effect` says when a fault strikes: "before" the request is handled, or "after", when the client cannot know what became
of it. `times` is how many requests are struck; with None, all that come until `clear_faults`. `topic` and `client_id`
narrow down which. An API is named as in Kafka's protocol ("Produce"), or "*" for every one.
"""

from typing import Any, Literal

from ottla.testing.broker.fault_control import FaultControl

Effect = Literal["before", "after"]


class Fault:
    """One that was asked for."""

    def __init__(self, control: FaultControl, number: int) -> None:
        self._control = control
        self._number = number

    @property
    def seen(self) -> int:
        """How many requests it has struck so far; 0 also if it has been cleared."""
        known = self._control.ask("faults")["faults"]
        return next((int(fault["seen"]) for fault in known if fault["id"] == self._number), 0)


class Faults:
    """What brokers for tests have in common: see the module. A broker without a control port raises."""

    def __init__(self) -> None:
        self.is_harmed = False
        """Whether anything was done to the broker that `heal` would undo."""
        self._is_time_moved = False

    @property
    def _control(self) -> FaultControl:
        raise NotImplementedError

    def _ask(self, command: str, **parameters: object) -> Any:
        control = self._control
        self.is_harmed = True
        return control.ask(command, **parameters)

    # Requests

    def fail_next(
        self,
        api: str,
        error: str,
        *,
        times: int | None = 1,
        topic: str | None = None,
        client_id: str | None = None,
        effect: Effect = "before",
    ) -> Fault:
        """Requests of `api` are answered with an error, where its clients look for one: at partitions, if it has any.

        With a topic, only what a request asks of that topic fails.
        """
        which = {"api": api, "times": times, "topic": topic, "client_id": client_id}
        return self._add("fail_next", error=error, effect=effect, **which)

    def drop_connection(
        self,
        api: str,
        *,
        times: int | None = 1,
        topic: str | None = None,
        client_id: str | None = None,
        effect: Effect = "before",
    ) -> Fault:
        """Requests of `api` are not answered: the connection is closed, before or after they have been handled."""
        return self._add("drop_connection", api=api, times=times, topic=topic, client_id=client_id, effect=effect)

    def delay(
        self,
        api: str,
        ms: int,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        effect: Effect = "before",
    ) -> Fault:
        """Requests of `api` wait before they are handled; with `effect="after"`, their replies wait."""
        which = {"api": api, "times": times, "topic": topic, "client_id": client_id}
        return self._add("delay", ms=ms, effect=effect, **which)

    def throttle(
        self,
        api: str,
        ms: int,
        *,
        times: int | None = 1,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> Fault:
        """Replies say `throttle_time_ms`, and as long the connection's next requests wait (KIP-219)."""
        return self._add("throttle", api=api, ms=ms, times=times, topic=topic, client_id=client_id)

    def _add(self, command: str, **parameters: object) -> Fault:
        return Fault(self._control, int(self._ask(command, **parameters)["id"]))

    def clear_faults(self) -> None:
        """Forgets every fault, resumes the node, frees its disk. Time stays where it is."""
        self._ask("clear_faults")

    # The node

    def pause(self) -> None:
        """The node takes connections, and no longer answers, until `resume`."""
        self._ask("pause")

    def resume(self) -> None:
        """What has waited is answered."""
        self._ask("resume")

    def fill_disk(self) -> None:
        """Nothing can be written any more, until `free_disk`. The metadata log is spared: without it a node stops."""
        self._ask("fill_disk")

    def free_disk(self) -> None:
        self._ask("free_disk")

    def advance_time(self, ms: int) -> None:
        """The node's clock goes ahead, and what was due meanwhile happens now. `restart` brings the real time back."""
        self._is_time_moved = True
        self._ask("advance_time", ms=ms)

    # Coordinators

    def move_coordinator(self, *, group: str | None = None, transactional_id: str | None = None) -> None:
        """The coordinator forgets what it had in memory and answers NOT_COORDINATOR, until a client looks for it."""
        self._ask("move_coordinator", group=group, transactional_id=transactional_id)

    def expire_member(self, group: str, member_id: str | None = None) -> list[str]:
        """Ends the session of a member, or of every member, of a group at once. Returns whose it was."""
        members: list[str] = self._ask("expire_member", group=group, member_id=member_id)["members"]
        return members
