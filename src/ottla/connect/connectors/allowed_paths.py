"""Which files connectors may use: those below the directories of the worker's `file.allowed.paths`.

Without that property it is the working directory. Whoever may configure a connector could otherwise read every file
that the worker can. Links are followed first: what counts is where a file is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ottla.connect.errors import ConnectError

PROPERTY: Final = "file.allowed.paths"


class PathNotAllowed(ConnectError):
    """A file or directory outside of what the worker allows."""


def allowed_path(text: str, worker: Mapping[str, str], setting: str) -> Path:
    """The path, if connectors may use it. Raises `PathNotAllowed`, which names the setting and the remedy."""
    path = Path(text).absolute()
    real = path.resolve()
    roots = [Path(one.strip()).resolve() for one in (worker.get(PROPERTY) or ".").split(",") if one.strip()]
    if not any(real == root or root in real.parents for root in roots):
        raise PathNotAllowed(
            f"{setting}={text}: connectors of this worker may use files below {', '.join(map(str, roots))} only; "
            f"add the directory to the worker's property {PROPERTY}"
        )
    return path
