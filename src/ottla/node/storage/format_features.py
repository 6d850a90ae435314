"""Which levels the features of a newly formatted cluster get: from a release, from what was asked for, by the rules."""

from collections.abc import Mapping

from ottla.base.errors import StorageError
from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.image.features import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    METADATA_VERSIONS,
    SERVED,
    default_level,
)
from ottla.wire.messages import FeatureLevelRecord

DYNAMIC_FLAGS = "--standalone, --initial-controllers, or --no-initial-controllers"


class WrongFeature(StorageError):
    """A release or a level that there is not, or that does not go with the others."""


def parse_release(text: str) -> int:
    """The metadata.version of a release: `4.3-IV0` exactly, `4.3` and `4.3.1` the last of that release."""
    prefix, _, step = text.partition("-")
    release = ".".join(prefix.split(".")[:2])
    for level, version in sorted(METADATA_VERSIONS.items(), reverse=True):
        if version.name == text or (not step and version.name.partition("-")[0] == release):
            return level
    known = ", ".join(version.name for version in METADATA_VERSIONS.values())
    raise WrongFeature(f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}")


def parse_level(text: str) -> tuple[str, int]:
    """From `feature=level`."""
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise WrongFeature(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name, int(level)
    except ValueError as problem:
        raise WrongFeature(f"Can't parse feature=level string {text}: unable to parse {level} as a short.") from problem


def effective_levels(release: int | None, given: Mapping[str, int], *, has_dynamic_voters: bool) -> dict[str, int]:
    """The level of every feature. Raises `WrongFeature` for what cannot be."""
    if METADATA_VERSION in given and release is not None:
        raise WrongFeature("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    metadata_version = given.get(METADATA_VERSION, LATEST_METADATA_VERSION if release is None else release)
    if metadata_version not in METADATA_VERSIONS:
        raise WrongFeature(f"Unknown metadata.version {metadata_version}")
    levels = {name: default_level(name, metadata_version) if name in SERVED else 0 for name in FEATURES}
    levels |= {**given, METADATA_VERSION: metadata_version}
    levels[KRAFT_VERSION] = _kraft_version(given.get(KRAFT_VERSION), has_dynamic_voters)
    for name in given:
        if name not in FEATURES:
            known = ", ".join(sorted(set(FEATURES) - {METADATA_VERSION}))
            raise WrongFeature(f"Unsupported feature: {name}. Supported features are: {known}")
    for name, level in sorted(levels.items()):
        _check(name, level, metadata_version)
    return levels


def _check(name: str, level: int, metadata_version: int) -> None:
    feature = FEATURES[name]
    if level not in feature.supported:
        raise WrongFeature(f"No feature:{name} with feature level {level}")
    if level and name not in SERVED:
        raise WrongFeature(f"{name} is not served by this version: it can only be at level 0")
    if level and metadata_version < feature.needs_metadata_version:
        raise WrongFeature(
            f"{name} could not be set to {level} because it depends on metadata.version level "
            f"{feature.needs_metadata_version}"
        )


def _kraft_version(given: int | None, has_dynamic_voters: bool) -> int:
    """Not a matter of the release: 1 where the voters are data (KIP-853), 0 where a setting names them."""
    if given is not None and bool(given) != has_dynamic_voters:
        when = "unless" if given else "if"
        instead = f"using one of {DYNAMIC_FLAGS} and removing controller.quorum.voters"
        raise WrongFeature(
            f"Cannot set kraft.version to {given} {when} controller.quorum.voters is empty and one of the flags "
            f"{DYNAMIC_FLAGS} is used. For dynamic controllers support, try "
            f"{instead if given else 'removing the --feature flag for kraft.version'}."
        )
    return int(has_dynamic_voters) if given is None else given


def level_records(levels: Mapping[str, int]) -> list[VersionedRecord]:
    """What bootstrap.checkpoint says: metadata.version first, features that are off and kraft.version not at all."""
    others = sorted(name for name in levels if name not in (METADATA_VERSION, KRAFT_VERSION) and levels[name])
    return [
        VersionedRecord(FeatureLevelRecord(name=name, feature_level=levels[name]), 0)
        for name in (METADATA_VERSION, *others)
    ]
