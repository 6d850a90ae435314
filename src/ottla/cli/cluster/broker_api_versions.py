"""`kafka-broker-api-versions`: which versions of each API the brokers serve, and which of them we would use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Terse, error_text
from ottla.cli.options.checks import require, run_program
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program
from ottla.cli.sessions import admin_settings

if TYPE_CHECKING:
    from ottla.client.cluster.cluster import Cluster
    from ottla.client.cluster.view import ClusterView
    from ottla.client.io.loop_thread import LoopThread

_PATIENCE_S: Final = 5.0

PROGRAM: Final = Program(
    "kafka-broker-api-versions",
    "This tool prints which versions of each API the brokers serve.",
    (
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server(s) to use for bootstrapping"),
        Option(
            "command-config", "Properties file with settings of the admin.", "String", "command config property file"
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    """Asks brokers one by one, in the order of their ids; a broker that does not answer is reported in its place."""
    require(given, "bootstrap-server")
    from ottla.client.cluster.cluster import Cluster
    from ottla.client.errors import KafkaError
    from ottla.client.io.loop_thread import LoopThread

    settings = admin_settings(given.get("bootstrap-server"), config_file=given.get("command-config"))
    loop = LoopThread("ottla-api-versions", settings)
    try:
        with loop.lock:
            cluster = Cluster(loop.world, settings)
        for _, broker in sorted(_view(loop, cluster).brokers.items()):
            named = f"{broker.host}:{broker.port} (id: {broker.id} rack: {broker.rack or 'null'} isFenced: false)"
            try:
                served = loop.ask(partial(cluster.versions_of, broker.id))
            except KafkaError as problem:
                print(f"{named} -> ERROR: {error_text(problem)}")
            else:
                print(f"{named} -> (\n\t" + ",\n\t".join(version_lines(served.versions)) + "\n)")
        with loop.lock:
            cluster.close()
    finally:
        loop.stop()
    return 0


def _view(loop: LoopThread, cluster: Cluster) -> ClusterView:
    """The cluster, if a broker tells it. Like Kafka's tool, this one is not patient where none can be reached."""
    request_s = cluster.settings.integer("request.timeout.ms") / 1000
    for patience_s in (min(request_s, _PATIENCE_S), request_s):
        try:
            return loop.ask(cluster.refresh, patience_s)
        except TimeoutError:
            if cluster.last_problem is not None:
                break
    servers = ", ".join(map(str, cluster.settings.bootstrap))
    raise Terse(f"Request METADATA failed on brokers [{servers}]: {cluster.last_problem or 'no answer came in time'}")


def version_lines(served: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    """What the broker serves by API key, and what it does not serve though clients might want it."""
    from ottla.wire.apis import all_apis

    known = all_apis()
    for_clients = {key for key, api in known.items() if "broker" in api.listeners}
    for key in sorted(served.keys() | for_clients):
        api = known.get(key)
        named = f"{api.name if api else 'UNKNOWN'}({int(key)}): "
        if key not in served:
            yield f"{named}UNSUPPORTED"
            continue
        oldest, newest = served[key]
        versions = str(oldest) if oldest == newest else f"{oldest} to {newest}"
        if api is None:
            yield f"{named}{versions}"
        elif api.stable_versions.stop <= oldest:
            yield f"{named}{versions} [unusable: node too new]"
        elif newest < api.stable_versions.start:
            yield f"{named}{versions} [unusable: node too old]"
        else:
            yield f"{named}{versions} [usable: {min(newest, api.stable_versions.stop - 1)}]"
