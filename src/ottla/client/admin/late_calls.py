"""Calls that are imported when they are first used: there are twenty modules of them, and a tool needs one or two.

    topics = Family("ottla.client.admin.topics")

    class Admin:
        create_topics = Method(topics.create_topics, _blocking)

`Admin.create_topics` imports the module, and puts the real method, with its signature and docstring, in its own place.
Type checkers see neither of these classes: the admins show them the calls themselves.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Call(NamedTuple):
    module: str
    name: str


class Family:
    __slots__ = ("_module",)

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Call:
        return Call(self._module, name)


class Method:
    """`make` makes a method of the call."""

    __slots__ = ("_call", "_make", "_name")

    def __init__(self, call: Call, make: Callable[[Any], Any]) -> None:
        self._call = call
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        method = self._make(getattr(import_module(self._call.module), self._call.name))
        for base in owner.__mro__:
            if base.__dict__.get(self._name) is self:
                setattr(base, self._name, method)
        return method.__get__(instance, owner)
