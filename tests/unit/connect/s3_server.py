"""An S3 on loopback: moto's server, in a process of its own, for the tests of one run."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

_STARTS_WITHIN_S = 120
_SERVER = """
import sys
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()  # until whoever started it is gone
server.stop()
"""


class S3Server:
    """`config` is what a connector needs to use it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.config = {
            "store.url": url,
            "s3.region": "us-east-1",
            "aws.access.key.id": "me",
            "aws.secret.access.key": "a secret of mine",
        }

    def bucket(self, name: str) -> str:
        urlopen(Request(f"{self.url}/{name}", method="PUT"), timeout=30).close()
        return name

    def files(self) -> Any:
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key="me", secret_key="a secret of mine", region="us-east-1", endpoint_override=self.url
        )

    def names(self, path: str) -> list[str]:
        from pyarrow.fs import FileSelector, FileType

        found = self.files().get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        return sorted(one.path.removeprefix(f"{path}/") for one in found if one.type == FileType.File)

    def read(self, path: str) -> bytes:
        with self.files().open_input_stream(path) as file:
            return bytes(file.read())

    def write(self, path: str, content: bytes) -> None:
        with self.files().open_output_stream(path) as file:
            file.write(content)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        host, port = process.stdout.readline().split()
        made = S3Server(f"http://{host}:{port}")
        deadline_s = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                urlopen(f"{made.url}/moto-api/data.json", timeout=10).close()
                break
            except URLError:
                assert time.monotonic() < deadline_s, "moto does not answer"
                time.sleep(0.05)
        yield made
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
