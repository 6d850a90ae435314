"""The answers to the parts of a request, joined to the answer to the whole, in the order of the parts."""

from typing import Any

from ottla.apis.description import Division
from ottla.wire.message import Message


class JoinedAnswers:
    """Joins what `answer` gets, whenever it comes. `response` is the whole once `is_whole`.

    A response with an error of its own is about the whole request: it is the answer, and no other part matters.
    """

    def __init__(self, division: Division) -> None:
        self.response: Message | None = None
        self.is_refused = False
        self._division = division
        self._early: dict[int, Message | None] = {}
        self._count = 0
        self._by_name: dict[tuple[Any, ...], Any] = {}

    def answer(self, place: int, response: Message | None) -> None:
        """None where the protocol has no reply."""
        self._early[place] = response
        while self._count in self._early:
            self._join(self._early.pop(self._count))
            self._count += 1

    def is_whole(self, parts: int) -> bool:
        return self.is_refused or self._count == parts

    def _join(self, response: Any) -> None:
        if response is None or self.is_refused:
            return
        if getattr(response, "error_code", 0):
            self.response, self.is_refused = response, True
            return
        if self.response is None:
            self.response = response
            self._divide(response)
            return
        self._add(self.response, response, 0, ())
        union = self._division.union
        if union is not None:
            into = getattr(self.response, union.list)
            there = {_named(one, union.about) for one in into}
            more = [one for one in getattr(response, union.list) if _named(one, union.about) not in there]
            setattr(self.response, union.list, [*into, *more])

    def _divide(self, first: Any) -> None:
        """Notes what the first response is about."""
        if self._division.joins:
            answers = getattr(first, self._division.answered[0].list)
            setattr(first, self._division.answered[0].list, [])
            self._add_all(first, answers, 0, ())

    def _add(self, into: Any, response: Any, depth: int, names: tuple[Any, ...]) -> None:
        answers = getattr(response, self._division.answered[depth].list)
        if self._division.joins:
            self._add_all(into, answers, depth, names)
        else:
            self._append(into, answers, depth)

    def _add_all(self, into: Any, answers: list[Any], depth: int, names: tuple[Any, ...]) -> None:
        """Answers about the same thing become one; of innermost ones the first counts."""
        lists = self._division.answered
        kept = getattr(into, lists[depth].list)
        about = lists[depth].about
        if not about:
            kept += answers
            return
        is_innermost = depth + 1 == len(lists)
        for answer in answers:
            path = (*names, *_named(answer, about))
            known = self._by_name.get(path)
            if known is None:
                self._by_name[path] = answer
                kept.append(answer)
                if not is_innermost:
                    inner = getattr(answer, lists[depth + 1].list)
                    setattr(answer, lists[depth + 1].list, [])
                    self._add_all(answer, inner, depth + 1, path)
            elif not is_innermost:
                if getattr(answer, "error_code", 0):
                    known.error_code = answer.error_code
                self._add(known, answer, depth + 1, path)

    def _append(self, into: Any, answers: list[Any], depth: int) -> None:
        """Answers follow each other. Those to an entry that was cut in two belong together."""
        lists = self._division.answered
        kept = getattr(into, lists[depth].list)
        is_cut = (
            depth + 1 < len(lists)
            and kept
            and answers
            and _named(kept[-1], lists[depth].about) == _named(answers[0], lists[depth].about)
        )
        if is_cut:
            self._append(kept[-1], getattr(answers[0], lists[depth + 1].list), depth + 1)
        kept += answers[1:] if is_cut else answers


def _named(answer: Any, about: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(answer, field) for field in about)
