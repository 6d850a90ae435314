"""What `kafka-storage` and `kafka-features` both tell of features without asking anybody."""

from collections.abc import Iterator

from ottla.machines.metadata.image.features import FEATURES, METADATA_VERSION, METADATA_VERSIONS, default_level
from ottla.node.storage.format_features import WrongFeature


def version_mapping(metadata_version: int, release: str | None) -> Iterator[str]:
    """The levels of features that a release has, by the name that it was asked for."""
    yield f"{METADATA_VERSION}={metadata_version} ({release or METADATA_VERSIONS[metadata_version].name})"
    for name in FEATURES:
        if name != METADATA_VERSION:
            yield f"{name}={default_level(name, metadata_version)}"


def dependencies(name: str, level: int) -> Iterator[str]:
    """What a level of a feature needs. Raises `WrongFeature` if there is no such feature or level."""
    if name == METADATA_VERSION:
        if level not in METADATA_VERSIONS:
            raise WrongFeature(f"Unknown metadata.version {level}")
        yield f"{name}={level} ({METADATA_VERSIONS[level].name}) has no dependencies."
        return
    if name not in FEATURES:
        raise WrongFeature(f"Unknown feature: {name}")
    if level not in FEATURES[name].supported:
        raise WrongFeature(f"Feature level {level} is not supported for feature {name}")
    needed = FEATURES[name].needs_metadata_version if level else 0
    if needed:
        yield f"{name}={level} requires:"
        yield f"    {METADATA_VERSION}={needed} ({METADATA_VERSIONS[needed].name})"
    else:
        yield f"{name}={level} has no dependencies."
