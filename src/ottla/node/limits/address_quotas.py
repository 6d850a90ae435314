"""How often clients of an address may connect, as the metadata has it (KIP-612): `kafka-configs --entity-type ips`.

An operator may have named a host instead of an address. Its addresses are looked up on a worker whenever quotas change;
until they are known, and if they cannot be found, the limit is not held.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from ottla.base.addresses import is_address
from ottla.base.ports import HostNames, Workers
from ottla.machines.metadata.image.quotas_image import QuotasImage
from ottla.machines.quota.applicable_limit import IP
from ottla.runtime.connection_rates import AddressRates

_log = logging.getLogger(__name__)

CONNECTION_RATE: Final = "connection_creation_rate"


class AddressQuotas:
    """`hold` is told the limits whenever they change."""

    def __init__(self, host_names: HostNames, workers: Workers, hold: Callable[[AddressRates], None]) -> None:
        self._host_names = host_names
        self._workers = workers
        self._hold = hold
        self._changes = 0

    def apply(self, quotas: QuotasImage) -> None:
        self._changes += 1
        change = self._changes
        given = {
            dict(entity)[IP]: values[CONNECTION_RATE]
            for entity, values in quotas.by_entity.items()
            if IP in dict(entity) and CONNECTION_RATE in values
        }
        default = given.pop(None, None)
        of_address = {name: rate for name, rate in given.items() if name is not None and is_address(name)}
        of_host = {name: rate for name, rate in given.items() if name is not None and name not in of_address}
        self._hold(AddressRates(of_address, default))
        if not of_host:
            return

        def looked_up(found: dict[str, float]) -> None:
            if change == self._changes:
                self._hold(AddressRates({**found, **of_address}, default))

        self._workers.run(lambda: self._look_up(of_host), looked_up, key=AddressQuotas)

    def _look_up(self, of_host: Mapping[str, float]) -> dict[str, float]:
        """Asks the network, and may wait for it: not for the loop."""
        found: dict[str, float] = {}
        for host, rate in of_host.items():
            try:
                addresses = self._host_names.addresses_of(host)
            except OSError as problem:
                _log.warning("the limit on connections from %s is not held: %s", host, problem)
            else:
                found.update(dict.fromkeys(addresses, rate))
        return found
