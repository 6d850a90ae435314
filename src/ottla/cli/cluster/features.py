"""`kafka-features`: which levels of features the cluster uses, and moving it to others."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.cli.failures import Terse, error_text
from ottla.cli.json_output import print_json
from ottla.cli.options.subcommands import (
    CommandLineError,
    ToolParser,
    add_connection,
    add_json,
    integer,
    run_command,
)
from ottla.cli.sessions import open_admin

if TYPE_CHECKING:
    from ottla.client.admin.feature_levels import Features, FeatureUpdate, UpgradeType
    from ottla.client.blocking.admin import Admin

METADATA_VERSION: Final = "metadata.version"


def main(arguments: list[str]) -> int:
    return run_command(_parser(), arguments, help_status=0, with_usage=False)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-features", "The tool for the levels of features.")
    add_connection(parser, required=False)
    parser.add_argument("--command-config", help="properties file with settings of the admin")
    names = "{describe,upgrade,downgrade,disable,version-mapping,feature-dependencies}"
    commands = parser.add_subparsers(metavar=names, required=True)

    describe = commands.add_parser("describe", help="print the levels that are in use, and those that could be")
    describe.add_argument("--node-id", type=integer, help="the node to ask, instead of any")
    add_json(describe)
    describe.set_defaults(action=_describe)

    for name, action in (("upgrade", _upgrade), ("downgrade", _downgrade)):
        change = commands.add_parser(name, help=f"{name} features")
        change.add_argument(
            "--metadata", help="(DEPRECATED) the release whose metadata.version to use, such as 4.2-IV0"
        )
        change.add_argument("--release-version", help="the release whose levels all features shall have")
        change.add_argument("--feature", action="append", help="a feature and its level, such as group.version=1")
        if name == "downgrade":
            change.add_argument("--unsafe", action="store_true", help="even if metadata could be lost")
        change.add_argument("--dry-run", action="store_true", help="only say whether it could be done")
        change.set_defaults(action=action)

    disable = commands.add_parser("disable", help="bring features to level 0")
    disable.add_argument("--feature", action="append", help="a feature")
    disable.add_argument("--unsafe", action="store_true", help="even if metadata could be lost")
    disable.add_argument("--dry-run", action="store_true", help="only say whether it could be done")
    disable.set_defaults(action=_disable)

    mapping = commands.add_parser("version-mapping", help="print the levels of features that a release has")
    mapping.add_argument("--release-version", help="the release; else the latest")
    mapping.set_defaults(action=_version_mapping)

    needs = commands.add_parser("feature-dependencies", help="print what a level of a feature needs")
    needs.add_argument("--feature", action="append", required=True, help="a feature and its level")
    needs.set_defaults(action=_feature_dependencies)
    return parser


def _admin(options: Namespace) -> Admin:
    if not options.bootstrap_server and not options.bootstrap_controller:
        raise CommandLineError("You must specify either --bootstrap-controller or --bootstrap-server.")
    controllers = options.bootstrap_controller
    return open_admin(options.bootstrap_server, controllers=controllers, config_file=options.command_config)


def _describe(options: Namespace) -> int:
    with _admin(options) as admin:
        features = admin.describe_features(node_id=options.node_id)
    if options.json:
        print_json(features)
        return 0
    for line in feature_lines(features):
        print(line)
    return 0


def feature_lines(features: Features) -> Iterator[str]:
    epoch = "-" if features.finalized_epoch is None else features.finalized_epoch
    for name, supported in sorted(features.supported.items()):
        finalized = features.finalized[name].high if name in features.finalized else 0
        yield (
            f"Feature: {name:40}  SupportedMinVersion: {_level(name, supported.low):15}  "
            f"SupportedMaxVersion: {_level(name, supported.high):15}  "
            f"FinalizedVersionLevel: {_level(name, finalized):15}  Epoch: {epoch}"
        )


def _level(feature: str, level: int) -> str:
    """Levels of metadata.version go by the names of releases."""
    if feature != METADATA_VERSION:
        return str(level)
    from ottla.machines.metadata.image.features import METADATA_VERSIONS

    return METADATA_VERSIONS[level].name if level in METADATA_VERSIONS else f"UNKNOWN [{level}]"


def _upgrade(options: Namespace) -> int:
    from ottla.client.admin.feature_levels import UpgradeType

    return _change(options, "upgrade", UpgradeType.UPGRADE)


def _downgrade(options: Namespace) -> int:
    return _change(options, "downgrade", _downgrade_type(options))


def _downgrade_type(options: Namespace) -> UpgradeType:
    from ottla.client.admin.feature_levels import UpgradeType

    return UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE


def _change(options: Namespace, verb: str, type: UpgradeType) -> int:
    from ottla.client.admin.feature_levels import FeatureUpdate, UpgradeType
    from ottla.machines.metadata.image.features import FEATURES, default_level
    from ottla.node.storage.format_features import parse_level, parse_release

    if options.release_version and (options.metadata or options.feature):
        raise Terse("Can not specify `release-version` with other feature flags.")
    levels: dict[str, int] = {}
    if options.release_version:
        metadata_version = parse_release(options.release_version)
        supported = _supported(options)
        for name in FEATURES:
            level = default_level(name, metadata_version)
            if name in supported and (level or type is not UpgradeType.UPGRADE):
                levels[name] = level
    if options.metadata:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION] = parse_release(options.metadata)
    for name, level in map(parse_level, options.feature or ()):
        if name in levels:
            raise Terse(f"Feature {name} was specified more than once.")
        levels[name] = level
    return _update(options, verb, {name: FeatureUpdate(level, type) for name, level in levels.items()})


def _supported(options: Namespace) -> set[str]:
    """What the cluster can have at all. A release has features that nodes of ours do not serve."""
    with _admin(options) as admin:
        return {*admin.describe_features().supported}


def _disable(options: Namespace) -> int:
    from ottla.client.admin.feature_levels import FeatureUpdate

    features = options.feature or []
    for name in features:
        if features.count(name) > 1:
            raise Terse(f"Feature {name} was specified more than once.")
    type = _downgrade_type(options)
    return _update(options, "disable", {name: FeatureUpdate(0, type) for name in features})


def _update(options: Namespace, verb: str, updates: dict[str, FeatureUpdate]) -> int:
    if not updates:
        raise Terse(f"You must specify at least one feature to {verb}")
    with _admin(options) as admin:
        errors = admin.update_features(updates, validate_only=options.dry_run).errors
    for name, update in sorted(updates.items()):
        to_level = "" if verb == "disable" else f" to {update.max_level}"
        if name in errors:
            print(f"{'Can' if options.dry_run else 'Could'} not {verb} {name}{to_level}. {error_text(errors[name])}")
        else:
            print(f"{name} {'can be' if options.dry_run else 'was'} {verb}d{to_level}.")
    if errors:
        raise Terse(f"{len(errors)} out of {len(updates)} operation(s) failed.")
    return 0


def _version_mapping(options: Namespace) -> int:
    from ottla.cli.feature_lines import version_mapping
    from ottla.machines.metadata.image.features import LATEST_METADATA_VERSION
    from ottla.node.storage.format_features import parse_release

    release = options.release_version
    for line in version_mapping(parse_release(release) if release else LATEST_METADATA_VERSION, release):
        print(line)
    return 0


def _feature_dependencies(options: Namespace) -> int:
    from ottla.cli.feature_lines import dependencies
    from ottla.node.storage.format_features import parse_level

    for name, level in map(parse_level, options.feature):
        for line in dependencies(name, level):
            print(line)
    return 0
