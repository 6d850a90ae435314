"""`ottla registry start`: a registry in a process of its own, beside any Kafka."""

import argparse

from ottla import __version__
from ottla.cli.start import given_settings

DEFAULT_PORT = 8081


def start(options: argparse.Namespace) -> int:
    from ottla.cli.log_format import print_json_line
    from ottla.cli.node_signals import stop_signals
    from ottla.cli.start import set_up_log
    from ottla.node.registry_process import run_registry
    from ottla.registry.registry import Registry
    from ottla.registry.settings import read_registry_settings

    set_up_log(options)
    settings = read_registry_settings(registry_properties(options))

    def banner(registry: Registry) -> None:
        summary = registry.summary()
        ready = f"ottla {__version__} schema registry is ready at {summary['address']}"
        if options.log_format == "json":
            print_json_line(ready, **summary)
            return
        lines = (
            ready,
            f"  topic    {summary['topic']}, group {summary['group']}",
            "  stop     Ctrl-C; a second one stops at once",
        )
        print("\n".join(lines), flush=True)

    return run_registry(settings, __version__, banner, stop_signals)


def registry_properties(options: argparse.Namespace) -> dict[str, str]:
    """The settings that `--config` and the other options describe. Raises `ValueError`."""
    properties: dict[str, str] = {}
    if options.config is not None:
        from ottla.config.properties import read_properties

        with open(options.config, "rb") as file:
            properties = read_properties(file.read())
    if options.bootstrap_server is not None:
        properties["kafkastore.bootstrap.servers"] = options.bootstrap_server
    if options.port is not None or options.host is not None or "listeners" not in properties:
        port = options.port if options.port is not None else str(DEFAULT_PORT)
        properties["listeners"] = f"http://{options.host or '127.0.0.1'}:{port}"
    properties |= given_settings(options.set)
    if "kafkastore.bootstrap.servers" not in properties:
        raise ValueError("--bootstrap-server HOST:PORT is missing: the brokers of the cluster that holds the schemas")
    return properties
