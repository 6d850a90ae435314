"""Files as config providers read them, from the system's disk."""

import os


class OsFiles:
    """The port `Files`."""

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)
