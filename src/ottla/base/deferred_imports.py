"""Modules that are imported now and loaded when they are first looked into.

Theory of operation. Some modules are imported at the top of a file, as all are, and then not used until something rare
happens, if ever: asyncio imports `ssl` whether or not there is TLS, and with it five megabytes of OpenSSL; a codec is
of no use before the first compressed batch. After `defer("ssl")`, `import ssl` gives an empty module, which loads
itself when it is asked for an attribute that it does not have yet. The code that imports it stays as it is.

It helps where a module is imported whole; `from ssl import SSLContext` looks into it at once. The standard library's
`LazyLoader` will not do, because a module of its kind also loads itself when it is imported a second time.

A load that fails is tried again by the next who looks.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader


def defer(*names: str) -> None:
    """From now on these are loaded late. Those that are loaded already stay so."""
    sys.meta_path.insert(0, _Finder(frozenset(names)))


class _Finder:
    """Finds where the import system would have found, and puts a `_Loader` in between."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _Loader(spec.loader))
        return spec


class _Loader:
    """Makes the module as `real` does, and leaves it empty."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.loading = RLock()
        self.is_loading = False

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Deferred


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        """Called for attributes that are not there: all but the few that the import system has set."""
        loader = self.__spec__.loader if self.__spec__ else None
        if isinstance(loader, _Loader):
            with loader.loading:  # Another thread that looks meanwhile waits until the module is whole.
                if type(self) is _Deferred and not loader.is_loading:
                    self._load(loader)
        return ModuleType.__getattribute__(self, name)

    def _load(self, loader: _Loader) -> None:
        loader.is_loading = True
        try:
            loader.real.exec_module(self)
        finally:
            loader.is_loading = False
        assert self.__spec__ is not None
        self.__spec__.loader = self.__loader__ = loader.real
        object.__setattr__(self, "__class__", ModuleType)
