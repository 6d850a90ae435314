"""What is wrong with the machines of nodes, and not with nodes: disks that are full, clocks that are set wrong.

A node's directory is a file system of its own, small and in memory, which can be filled up. Its clock goes through a
library that is loaded before all others and adds what a file says. The first needs the right to mount, the second a
compiler of C; where one of them is missing, that fault is left out, and the run says so.
"""

import os
import shutil
import struct
import subprocess
from pathlib import Path

_DISK_MB = 96
_FILLER = "filler"
_CHUNK = bytes(1 << 16)
_SOURCE = Path(__file__).with_name("moved_clock.c")


class NodeMachines:
    """Of all nodes of a cluster. `directory` is the cluster's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._mounted: dict[int, Path] = {}
        self._library: Path | None = None
        self._clocks: dict[int, Path] = {}

    @property
    def can_fill_disks(self) -> bool:
        return bool(self._mounted)

    @property
    def can_move_clocks(self) -> bool:
        return self._library is not None

    def make(self, node_ids: tuple[int, ...]) -> None:
        for node_id in node_ids:
            self._mount(node_id)
            self._clocks[node_id] = self._directory / f"{node_id}.clock"
            self.move_clock(node_id, 0.0)
        compiler, library = shutil.which("cc"), self._directory / "moved_clock.so"
        if compiler is not None:
            words = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE)]
            if subprocess.run(words, check=False, capture_output=True).returncode == 0:
                self._library = library

    def close(self) -> None:
        for path in self._mounted.values():
            subprocess.run(["umount", "--lazy", str(path)], check=False, capture_output=True)
        self._mounted.clear()

    def environment(self, node_id: int) -> dict[str, str]:
        """What a node's process is started with."""
        if self._library is None:
            return dict(os.environ)
        return {**os.environ, "LD_PRELOAD": str(self._library), "OTTLA_CHAOS_CLOCK": str(self._clocks[node_id])}

    # Disks

    def data(self, node_id: int) -> Path:
        """Where the node has its directories."""
        return self._directory / f"data-{node_id}"

    def _mount(self, node_id: int) -> None:
        path = self.data(node_id)
        path.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "ottla-chaos", str(path)]
        if shutil.which("mount") and subprocess.run(words, check=False, capture_output=True).returncode == 0:
            self._mounted[node_id] = path

    def fill_disk(self, node_id: int) -> None:
        with (self._mounted[node_id] / _FILLER).open("ab", buffering=0) as filler:
            try:
                while True:
                    filler.write(_CHUNK)
            except OSError:
                return

    def free_disk(self, node_id: int) -> None:
        (self._mounted[node_id] / _FILLER).unlink(missing_ok=True)

    # Clocks

    def move_clock(self, node_id: int, ahead_s: float) -> None:
        with self._clocks[node_id].open("r+b" if self._clocks[node_id].exists() else "wb") as file:
            file.write(struct.pack("=q", round(ahead_s * 1e9)))
