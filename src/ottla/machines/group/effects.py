"""What a command has led to so far: gathered while a group goes from state to state, handed over at the end."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.machines.coordinator_machine import Answer, CoordinatorDecision, CoordinatorRecord, Timer, Waiter
from ottla.wire.errors import ErrorCode

ReplyT = TypeVar("ReplyT")


class Effects:
    __slots__ = ("answers", "records", "timers", "undo")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.answers: list[Answer] = []
        self.timers: list[Timer] = []
        self.undo: Callable[[ErrorCode, int], CoordinatorDecision[Any]] | None = None

    def answer(self, waiter: Waiter, reply: Any) -> None:
        self.answers.append(Answer(waiter, reply))

    def decision(self, reply: ReplyT) -> CoordinatorDecision[ReplyT]:
        return CoordinatorDecision(reply, self.records, answers=self.answers, timers=self.timers, undo=self.undo)
