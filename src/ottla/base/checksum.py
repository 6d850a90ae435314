"""CRC-32C, the checksum of record batches, from the compiled part of the `crc32c` package.

Importing the package itself imports `importlib.metadata` too, for a version number that nobody here asks for: 25 ms and
7 MB in every process, a quarter of a command's start. So the extension is loaded by itself where it is found, and the
package is imported only where it is not (its layout is its own affair, and may change).
"""

from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec

Checksum = Callable[..., int]


def _load() -> Checksum:
    package = find_spec("crc32c")
    for directory in (package.submodule_search_locations or ()) if package else ():
        spec = FileFinder(directory, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("_crc32c")
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            found: Checksum = extension.crc32c
            return found
    from crc32c import crc32c as whole_package

    return whole_package


crc32c = _load()
"""`crc32c(data, value=0)`: the checksum of `data`, going on from `value`."""
