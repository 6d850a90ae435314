"""`ottla connect validate FILE…`: connectors in files held against their settings, without a worker."""

import argparse
import os
import sys
from pathlib import Path

from ottla import __version__
from ottla.cli.connect.connector_files import BadFile, read_connectors
from ottla.connect.options import InvalidOption
from ottla.connect.worker.config_providers import ConfigProviders
from ottla.connect.worker.os_files import OsFiles
from ottla.connect.worker.plugins import InstalledPlugins
from ottla.connect.worker.refusals import Refused
from ottla.connect.worker.secrets import secrets_of
from ottla.connect.worker.validation import find_plugin, validate


def validate_files(options: argparse.Namespace) -> int:
    """The exit status is 1 if anything is wrong."""
    from ottla.cli.connect.starting import worker_properties

    worker = worker_properties(options)
    providers = ConfigProviders(worker, OsFiles(), os.environ)
    plugins = InstalledPlugins(__version__)
    wrong = 0
    for text in options.file:
        try:
            connectors = read_connectors(Path(text))
        except (BadFile, OSError) as problem:
            print(problem, file=sys.stderr)
            wrong += 1
            continue
        for connector in connectors:
            values: dict[str, str] = {}
            try:
                find_plugin(plugins, connector.config)
                config = providers.resolved(connector.config, values)
                report = validate(plugins, worker, config, __version__, asks_world=not options.offline)
            except (Refused, InvalidOption) as problem:
                print(f"{connector.path}: {connector.name}: {problem}", file=sys.stderr)
                wrong += 1
                continue
            secrets = secrets_of(connector.config, config, report.plugin.load().settings, values)
            errors = [secrets.hidden_in(error) for one in report.checked for error in one.errors]
            for error in errors:
                print(f"{connector.path}: {connector.name}: {error}", file=sys.stderr)
            wrong += bool(errors)
            if not errors:
                print(
                    f"{connector.path}: {connector.name}: valid, a {report.plugin.type} of {report.plugin.class_name}"
                )
    return 1 if wrong else 0
