"""What went over the connections of a simulation, line by line: two runs of one seed have the same lines."""

from collections.abc import Mapping
from hashlib import sha256

from ottla.base.ports import Buffer


class Transcript:
    """`lines` tell when, who, what, how many bytes and their hash, so that the first difference can be found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, at_us: int, what: str, data: Buffer = b"") -> None:
        self.lines.append(f"{at_us / 1_000_000:.6f} {what} {len(data)} {_short_hash(data)}")

    def note_files(self, at_us: int, files: Mapping[str, bytes]) -> None:
        """A whole disk, a line a file."""
        for path, content in sorted(files.items()):
            self.note(at_us, path, content)

    def digest(self) -> str:
        return sha256("\n".join(self.lines).encode()).hexdigest()


def _short_hash(data: Buffer) -> str:
    return sha256(data).hexdigest()[:16]
