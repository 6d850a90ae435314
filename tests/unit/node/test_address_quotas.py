"""Limits on connections from addresses: as they are given, and by name."""

from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.quotas_image import QuotasImage, quota_record
from ottla.node.limits.quotas import CONNECTION_RATE, AddressQuotas
from ottla.runtime.admission import AddressRates
from ottla.testing.host_names import FixedHostNames
from ottla.testing.step_workers import StepWorkers


def image_of(given: dict[str | None, float]) -> QuotasImage:
    image = QuotasImage()
    for name, rate in given.items():
        image.replay(quota_record(frozenset({("ip", name)}), CONNECTION_RATE, rate), MetadataDelta())
    return image


def test_addresses_names_and_the_default() -> None:
    held: list[AddressRates] = []
    quotas = AddressQuotas(FixedHostNames({"there": ["10.0.0.7", "::7"]}), StepWorkers(), held.append)
    quotas.apply(image_of({None: 5, "10.0.0.1": 1, "there": 2, "nowhere": 3}))
    assert held[0] == ({"10.0.0.1": 1}, 5), "what is known at once is held at once"
    assert held[-1] == ({"10.0.0.1": 1, "10.0.0.7": 2, "::7": 2}, 5)
    assert [held[-1].limit_of(host) for host in ("10.0.0.1", "::7", "10.9.9.9")] == [1, 2, 5]


def test_a_name_that_is_found_too_late_changes_nothing() -> None:
    held: list[AddressRates] = []
    workers = StepWorkers()
    workers.hold()
    quotas = AddressQuotas(FixedHostNames({"there": ["10.0.0.7"]}), workers, held.append)
    quotas.apply(image_of({"there": 2}))
    quotas.apply(image_of({}))
    workers.let_go()
    assert held[-1] == ({}, None)
