"""A node that has started and answered does not carry what it has not needed: that is what keeps it quick and small.

Start-up time and memory follow from what is loaded, and what is loaded can be told exactly. A module that shows up here
was imported by something that every node loads; look at who (`python -X importtime -m ottla.cli.main start`), and
import it where it is used.
"""

import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, socket, sys, threading
from types import ModuleType
import ottla.cli.start as start

def ask(summary, **_):
    from ottla.wire.frame import encode_request
    from ottla.wire.messages import MetadataRequest
    host, _, port = summary["address"].partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(encode_request(MetadataRequest(), 12, 1, None))
        assert connection.recv(4)
    print(*(name for name, module in sys.modules.items() if type(module) is ModuleType))
    os.kill(os.getpid(), signal.SIGTERM)

start._banner = lambda *given, **named: threading.Thread(target=ask, args=given, kwargs=named).start()
sys.exit(start.main(["--port", "0", "--data", sys.argv[1]]))
"""

LIBRARIES = {
    "_ssl": "OpenSSL, five megabytes of it, is for TLS",
    "_hashlib": "OpenSSL again, for passwords",
    "cramjam.cramjam": "the codecs are for compressed batches",
    "xxhash": "is for groups of the consumer protocol, and for lz4 frames that are not Kafka's",
    "re2": "is for expressions that clients send",
    "pyarrow": "is for those who ask for Arrow",
    "ctypes": "is for what Python has no function for",
    "httptools": "is for `--metrics`, `--faults` and `--registry`",
}
STANDARD = {
    "pathlib": "brings urllib and ipaddress; os.path will do",
    "shutil": "brings all compression libraries",
    "tempfile": "is for `--ephemeral`",
    "uuid": "brings platform, and asks it; is for members of groups",
    "multiprocessing": "the cleaner has a process without it",
    "inspect": "brings ast and dis; a dataclass without a docstring looks into it, to write one",
    "ipaddress": "is for addresses of version 6; takes a quarter of a megabyte, as do the next two",
    "locale": "is for translations, of which there are none, and for the output of processes",
    "random": "the system's chance is a few lines",
    "pkgutil": "a module's own loader reads what lies beside it",
    "http": "the metrics page is served by a few lines",
}
OURS = {
    "ottla.broker.data.produce": "handlers are imported with their first request",
    "ottla.broker.data.fetch": "handlers are imported with their first request",
    "ottla.serving.access": "is for an authorizer, and not every node has one",
    "ottla.broker.access": "is for an authorizer, and not every node has one",
    "ottla.security.acls.authorizer": "is for an authorizer, and not every node has one",
    "ottla.log.cleaning.cleaning": "is for the cleaner's own process",
    "ottla.machines.group.group_coordinator": "is for who leads a partition of __consumer_offsets",
    "ottla.machines.transaction.transaction_coordinator": "is for who leads a partition of __transaction_state",
    "ottla.node.faults": "is for `--faults`",
    "ottla.node.metrics.node_metrics": "is for `--metrics`",
    "ottla.node.storage.formatting": "a directory is formatted once",
    "ottla.wire.http": "is for `--metrics`, `--faults` and `--registry`",
    "ottla.node.registry_inside": "is for `--registry`",
    "ottla.registry": "is for `--registry`",
    "ottla.schemas": "is for a registry, and for clients",
    "ottla.client": "is for programs, and for a registry",
    "ottla.testing": "is for tests",
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules of a node on a directory that has been used before."""
    data: Path = tmp_path_factory.mktemp("started") / "data"
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", PROGRAM, str(data)], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize("absent", [*LIBRARIES, *STANDARD, *OURS])
def test_a_started_node_has_not_loaded(absent: str, loaded: set[str]) -> None:
    assert absent not in loaded, (LIBRARIES | STANDARD | OURS)[absent]


def test_the_names_are_those_of_modules_that_there_are() -> None:
    """Or else the test above would hold for ever."""
    program = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))"
    run = subprocess.run(
        [sys.executable, "-c", program, *LIBRARIES, *STANDARD, *OURS], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == []


def test_what_every_quorum_tells_itself_is_cheap_to_make() -> None:
    """A dataclass costs 0.6 ms of every start, a named tuple an eighth of that."""
    from ottla.machines.raft import events, machine, voters

    made = {name for module in (events, machine, voters) for name, one in vars(module).items() if is_dataclass(one)}
    assert made == set()
