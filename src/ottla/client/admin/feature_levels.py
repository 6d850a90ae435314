"""Features of the cluster and their levels: which there are, and moving them up or down (KIP-584)."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla import __version__
from ottla.client.admin.asking import Asking, never
from ottla.client.admin.results import Outcome, Results
from ottla.client.errors import error_for
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

_FIRST_WITH_UPGRADE_TYPES = 1


class LevelRange(NamedTuple):
    low: int
    high: int


class Features(NamedTuple):
    finalized: dict[str, LevelRange]
    """The levels that the whole cluster acts by."""
    finalized_epoch: int | None
    """Grows with each change; None if nothing is finalized."""
    supported: dict[str, LevelRange]
    """The levels that the node knows which was asked."""


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level that a feature shall have; 0 disables it."""

    max_level: int
    type: UpgradeType = UpgradeType.UPGRADE


async def describe_features(asking: Asking, *, node_id: int | None = None, timeout: float | None = None) -> Features:
    """The features as one node knows them: the one that is named, or any."""
    deadline = asking.deadline(timeout)
    request = messages.ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
    if node_id is None:
        response = await asking.any(request, deadline)
    else:
        response = await asking.broker(node_id, request, deadline)
    if response.error_code:
        raise error_for(response.error_code)
    return Features(
        {one.name: LevelRange(one.min_version_level, one.max_version_level) for one in response.finalized_features},
        None if response.finalized_features_epoch < 0 else response.finalized_features_epoch,
        {one.name: LevelRange(one.min_version, one.max_version) for one in response.supported_features},
    )


async def update_features(
    asking: Asking,
    updates: Mapping[str, FeatureUpdate],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Results[str, None]:
    """Moves features to other levels: all of them, or none."""
    deadline = asking.deadline(timeout)

    def request(version: int) -> Message:
        made = messages.UpdateFeaturesRequest(
            timeout_ms=asking.server_timeout_ms(deadline), validate_only=validate_only
        )
        for name, (max_level, kind) in updates.items():
            update = messages.UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=max_level)
            if version >= _FIRST_WITH_UPGRADE_TYPES:
                update.upgrade_type = kind
            else:
                update.allow_downgrade = kind is not UpgradeType.UPGRADE
            made.feature_updates.append(update)
        return made

    async def attempt(left: list[str]) -> dict[str, Outcome[None]]:
        response = await asking.controller(request, deadline, api=ApiKey.UPDATE_FEATURES)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        answer = {one.feature: one for one in response.results if one.error_code}
        return {
            name: error_for(answer[name].error_code, answer[name].error_message) if name in answer else None
            for name in left
        }

    return await asking.each("update_features", updates, attempt, deadline, may_pass=never)
