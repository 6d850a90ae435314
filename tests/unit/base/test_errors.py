"""Every exception of the package belongs to one family, so that a caller can catch what it understands."""

import importlib
import inspect
import pkgutil

import ottla
from ottla.base.errors import (
    ClientError,
    LocalProtocolError,
    OttlaError,
    ProtocolError,
    RemoteProtocolError,
    StorageError,
)


def test_who_broke_the_protocol_is_told_apart() -> None:
    assert issubclass(RemoteProtocolError, ProtocolError)
    assert issubclass(LocalProtocolError, ProtocolError)
    assert not issubclass(RemoteProtocolError, LocalProtocolError)


def test_the_families_have_one_root() -> None:
    for family in (ProtocolError, StorageError, ClientError):
        assert family.__bases__ == (OttlaError,)


def test_every_exception_we_define_is_an_ottla_error() -> None:
    strays = []
    for module in pkgutil.walk_packages(ottla.__path__, "ottla."):
        if ".testing" in module.name:
            continue
        exceptions = [
            (name, thing)
            for name, thing in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            if thing.__module__ == module.name and issubclass(thing, Exception) and not name.startswith("_")
        ]
        strays += [f"{module.name}.{name}" for name, thing in exceptions if not issubclass(thing, OttlaError)]
    assert strays == []
