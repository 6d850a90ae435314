"""Every exception of the package belongs to one family, so that a caller can catch what it understands."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import pytest

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


def modules() -> Iterator[ModuleType]:
    """All that can be imported: a first run installs no Spark."""
    needs = {
        "ottla.spark": "pyspark",
        "ottla.connect.engine": "pyspark",
        "ottla.connect.connectors.postgres": "psycopg",
        "ottla.connect.connectors.mysql": "pymysql",
        "ottla.connect.connectors.lakes.delta": "deltalake",
        "ottla.connect.connectors.lakes.iceberg": "pyiceberg",
    }
    absent = tuple(part for part, library in needs.items() if find_spec(library) is None)
    for found in pkgutil.walk_packages(ottla.__path__, "ottla."):
        if found.name.startswith("ottla.testing"):
            continue  # faults that tests inject are not ours to raise
        if absent and found.name.startswith(absent):
            continue
        try:
            yield importlib.import_module(found.name)
        except ModuleNotFoundError as missing:
            # What is compiled may be missing, and so may what is only used with it.
            if str(missing.name).rpartition(".")[2] not in ("_fast", "_native"):
                raise


@pytest.mark.slow
def test_every_exception_we_define_is_an_ottla_error() -> None:
    strays = [
        f"{module.__name__}.{name}"
        for module in modules()
        for name, thing in vars(module).items()
        if inspect.isclass(thing)
        and thing.__module__ == module.__name__
        and issubclass(thing, Exception)
        and not name.startswith("_")
        if not issubclass(thing, OttlaError | Warning)
    ]
    assert strays == []
