"""Starts a worker in this process: `ottla connect start`, `connect-distributed`, `connect-standalone`, `run`.

Spark and connectors are imported here, when a worker starts, and by no other command.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla import __version__
from ottla.cli.connect.connector_files import FileConnector, read_connectors
from ottla.cli.start import given_settings
from ottla.config.properties import read_properties

if TYPE_CHECKING:
    from ottla.connect.engine_port import Engine
    from ottla.connect.worker.service import WorkerService
    from ottla.connect.worker.settings import WorkerSettings
    from ottla.connect.worker.worker import Worker
    from ottla.runtime.loop import NodeLoop

DEFAULTS: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
CLUSTER_DEFAULTS: Final = {
    **DEFAULTS,
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
}
"""What `ottla connect start` uses where no file says otherwise: Kafka's connect-distributed.properties."""
_IDLE_MS: Final = 500


def worker_properties(options: argparse.Namespace) -> dict[str, str]:
    """What `--config` and the other options describe, over the defaults. Raises `ValueError` or `OSError`."""
    properties: dict[str, str] = {} if options.config is not None else dict(CLUSTER_DEFAULTS)
    if options.config is not None:
        properties = read_properties(Path(options.config).read_bytes())
    if getattr(options, "bootstrap_server", None) is not None:
        properties["bootstrap.servers"] = options.bootstrap_server
    port, host = getattr(options, "port", None), getattr(options, "host", None)
    if port is not None or host is not None:
        shown = f"[{host}]" if host and ":" in host else host or "127.0.0.1"
        properties["listeners"] = f"http://{shown}:{'8083' if port is None else port}"
    return properties | given_settings(options.set)


def start(options: argparse.Namespace) -> int:
    """`ottla connect start`."""
    from ottla.connect.worker.settings import read_worker_settings

    return _run(options, read_worker_settings(worker_properties(options)))


def run(options: argparse.Namespace) -> int:
    """`ottla connect run FILE…`: a standalone worker with these connectors; with `--once`, until they are through."""
    from ottla.connect.worker.settings import read_worker_settings

    connectors = [one for path in options.file for one in read_connectors(Path(path))]
    properties = {**DEFAULTS, **worker_properties(options)}
    properties.setdefault("listeners", "http://127.0.0.1:0")
    names = "-".join(sorted(one.name for one in connectors))
    if options.config is None:
        properties["group.id"] = f"connect-run-{names}"[:200]
        properties["offset.storage.topic"] = "connect-standalone-offsets"
    settings = read_worker_settings(properties, standalone=True)
    return _run(options, settings, connectors, once_idle_s=options.idle if options.once else None)


def distributed(arguments: list[str]) -> int:
    """`connect-distributed FILE`, as Kafka's."""
    parser = argparse.ArgumentParser(
        prog="connect-distributed", description="Starts a worker of a group: one leads, the others stand by."
    )
    parser.add_argument("file", help="worker's properties, as connect-distributed.properties")
    _add_log(parser)
    options = parser.parse_args(_without_daemon(arguments))

    def begin() -> int:
        from ottla.connect.worker.settings import read_worker_settings

        return _run(options, read_worker_settings(read_properties(Path(options.file).read_bytes())))

    return _reported("connect-distributed", begin)


def standalone(arguments: list[str]) -> int:
    """`connect-standalone FILE CONNECTOR…`, as Kafka's."""
    parser = argparse.ArgumentParser(
        prog="connect-standalone", description="Starts a worker that stands alone, with connectors from files."
    )
    parser.add_argument("file", help="worker's properties, as connect-standalone.properties")
    parser.add_argument("connector", nargs="*", help="connectors: .properties, .json or .yaml")
    _add_log(parser)
    options = parser.parse_args(_without_daemon(arguments))

    def begin() -> int:
        from ottla.connect.worker.settings import read_worker_settings

        properties = read_properties(Path(options.file).read_bytes())
        connectors = [one for path in options.connector for one in read_connectors(Path(path))]
        if "offset.storage.file.filename" in properties:
            topic = properties.get("offset.storage.topic", "connect-standalone-offsets")
            print(
                f"connect-standalone: offset.storage.file.filename is not used: offsets are in the topic {topic}, so "
                "that they are committed with the records (docs/connect/worker.md)",
                file=sys.stderr,
            )
        return _run(options, read_worker_settings(properties, standalone=True), connectors)

    return _reported("connect-standalone", begin)


def _add_log(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.start import add_log_options

    add_log_options(parser, "info")


def _without_daemon(arguments: list[str]) -> list[str]:
    if arguments[:1] == ["-daemon"]:
        sys.exit("connect: -daemon is not served; use a service manager (deploy/ has a systemd unit for nodes)")
    return arguments


def _reported(program: str, begin: Callable[[], int]) -> int:
    from ottla.base.errors import OttlaError

    try:
        return begin()
    except (OttlaError, OSError, ValueError, TimeoutError) as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        return 1


def make_engine(settings: "WorkerSettings") -> "Engine":
    """The engine on Spark."""
    from ottla.connect.errors import ConnectError

    try:
        module: Any = import_module("ottla.connect.engine")
        engine: Engine = module.SparkEngine(settings.properties)
    except ImportError as problem:
        raise ConnectError(
            f"connectors run on Spark, which is not installed: {problem}; pip install 'ottla[connect]'"
        ) from None
    return engine


def _run(
    options: argparse.Namespace,
    settings: "WorkerSettings",
    connectors: list[FileConnector] | None = None,
    once_idle_s: float | None = None,
) -> int:
    from ottla.cli.log_format import print_json_line
    from ottla.cli.node_signals import stop_signals
    from ottla.cli.start import set_up_log
    from ottla.connect.worker.plugins import InstalledPlugins
    from ottla.connect.worker.process import run_worker

    set_up_log(options)
    logging.getLogger("py4j").setLevel(logging.WARNING)  # It tells of every connection to Spark's Java.
    given = _Given(connectors or [], once_idle_s)

    @contextmanager
    def signals(loop: "NodeLoop", on_signal: Callable[[str], None]) -> Iterator[None]:
        given.stop = lambda: on_signal("DONE")
        with stop_signals(loop, on_signal):
            yield

    def on_ready(service: "WorkerService") -> None:
        ready = f"ottla {__version__} connect worker is ready at {', '.join(map(str, service.addresses))}"
        if options.log_format == "json":
            print_json_line(ready, group=settings.values.text("group.id"))
        else:
            print(
                f"{ready}\n  group    {settings.values.text('group.id')}\n  stop     Ctrl-C; a second one at once",
                flush=True,
            )
        given.begin(service.worker)

    status = run_worker(
        settings, InstalledPlugins(__version__), make_engine(settings), __version__, os.environ, on_ready, signals
    )
    return status or given.status


class _Given:
    """Connectors that the command line names: created when the worker leads, and watched if it is to end with them."""

    def __init__(self, connectors: list[FileConnector], once_idle_s: float | None) -> None:
        self._connectors = connectors
        self._once_idle_s = once_idle_s
        self.stop: Callable[[], None] = lambda: None
        self.status = 0

    def begin(self, worker: "Worker") -> None:
        if self._connectors:
            worker.world.start(self._create(worker))

    async def _create(self, worker: "Worker") -> None:
        while not worker.leads:  # Brokers may have to create the topic of transactions first.
            await worker.world.sleep(_IDLE_MS)
        if self._once_idle_s is None:
            await self._put(worker, self._connectors)
            return
        # Sinks come after sources: then what these wrote is there when a sink looks where its topics end.
        sinks = [one for one in self._connectors if worker.type_of_config(one.config) == "sink"]
        sources = [one for one in self._connectors if one not in sinks]
        for some in (sources, sinks):
            if not await self._put(worker, some) or not await self._through(worker, some, self._once_idle_s):
                return
        self.stop()

    async def _put(self, worker: "Worker", connectors: list[FileConnector]) -> bool:
        from ottla.connect.worker.refusals import Refused
        from ottla.connect.worker.worker import NotLeader

        for one in connectors:
            while True:
                try:
                    await worker.put_config(one.name, one.config)
                    break
                except NotLeader:  # It lost a transaction, and takes the lead again.
                    await worker.world.sleep(_IDLE_MS)
                except Refused as refused:
                    self._give_up(f"connector {one.name} ({one.path}): {refused.message}")
                    return False
        return True

    def _give_up(self, why: str) -> None:
        print(why, file=sys.stderr)
        self.status = 1
        self.stop()

    async def _offsets(self, worker: "Worker", names: list[str]) -> object:
        """None while Kafka cannot be asked."""
        from ottla.connect.worker.refusals import Refused

        try:
            return [await worker.offsets(name) for name in names]
        except Refused:
            return None

    async def _through(self, worker: "Worker", connectors: list[FileConnector], idle_s: float) -> bool:
        """Waits until each has moved all that there was, by its own account; and if some cannot say, until all others
        have, all run, and no offset has moved for so long. False if one has failed."""
        names = [one.name for one in connectors]
        before: object = None
        since_s = worker.world.now_s()
        while names:
            await worker.world.sleep(_IDLE_MS)
            tasks = [status for name in names for _, status in worker.state.tasks_of(name)]
            of_connectors = [
                worker.state.connector_statuses[one] for one in names if one in worker.state.connector_statuses
            ]
            failed = [status for status in (*tasks, *of_connectors) if status.state.value == "FAILED"]
            if failed:
                self._give_up(failed[0].trace or "a connector has failed")
                return False
            if not (len(tasks) == len(names) and all(status.state.value == "RUNNING" for status in tasks)):
                before, since_s = None, worker.world.now_s()
                continue
            ends = [None if (one := worker.progress(name)) is None else one.progress.is_at_end for name in names]
            if all(ends):
                return True
            now = await self._offsets(worker, names)
            if now is None or now != before or False in ends:
                before, since_s = now, worker.world.now_s()
            elif worker.world.now_s() - since_s >= idle_s:
                return True
        return True
