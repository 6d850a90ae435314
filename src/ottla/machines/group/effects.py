"""What a command has led to so far: gathered while a group goes from state to state, handed over at the end."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.machines.coordinator_machine import Answer, CoordinatorDecision, CoordinatorRecord, Timer, Waiter

ReplyT = TypeVar("ReplyT")


class Effects:
    __slots__ = ("answers", "followed_by", "records", "timers")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self.answers: list[Answer] = []
        self.timers: list[Timer] = []
        self.followed_by: Callable[[Any, int], CoordinatorDecision[None]] | None = None

    def answer(self, waiter: Waiter, reply: Any) -> None:
        self.answers.append(Answer(waiter, reply))

    def decision(self, reply: ReplyT) -> CoordinatorDecision[ReplyT]:
        return CoordinatorDecision(reply, self.records, self.answers, self.timers, followed_by=self.followed_by)
