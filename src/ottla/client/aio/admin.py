"""The admin for asyncio: every call of `client/admin` as a method to await. The blocking admin has the same methods."""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

from ottla.client.admin.asking import Asking
from ottla.client.admin.calls import AsyncCalls
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.promise import spawn
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from os import PathLike

    from ottla.client.keywords import AdminKeywords

P = ParamSpec("P")
T = TypeVar("T")


def _in_the_loop(
    call: Callable[Concatenate[Asking, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Admin", P], Coroutine[Any, Any, T]]:
    @wraps(call)
    async def method(admin: "Admin", /, *args: P.args, **keywords: P.kwargs) -> T:
        admin._io.check()
        try:
            return await admin._io.future(spawn(call(admin._asking, *args, **keywords)))
        except KafkaError as problem:
            failure = admin._asking.failure_of(call.__name__, problem)
            raise failure from (None if failure is problem else problem)

    return method


class Admin(AsyncCalls, make=_in_the_loop):
    """Administers a cluster, from the event loop that runs when it is made.

        async with Admin(bootstrap_servers="localhost:9092") as admin:
            (await admin.create_topics([NewTopic("clicks", partitions=3)])).raise_first()

    A call on many items returns `Results`: the outcome of each, which raises where it failed. A call on one thing
    returns its value, or raises. `timeout` limits one call, in seconds; else `default.api.timeout.ms` does.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **keywords: "Unpack[AdminKeywords]") -> None:
        self._begin(read_settings(Scope.ADMIN, settings, keywords))

    @classmethod
    def from_properties(cls, path: "str | PathLike[str]", /, **keywords: "Unpack[AdminKeywords]") -> "Admin":
        """Settings from a properties file, with keywords over them."""
        with open(path, "rb") as file:
            settings = read_settings_file(Scope.ADMIN, file.read(), keywords)
        admin = cls.__new__(cls)
        admin._begin(settings)
        return admin

    def _begin(self, settings: ClientSettings) -> None:
        settings.warn(stacklevel=4)
        self._io = AsyncioWorld(settings)
        self._cluster = Cluster(self._io.world, settings)
        self._asking = Asking(self._cluster)
        self._cluster.offer_metrics("admin.client", self._asking.metrics.values)
        self._io.end_with(self, None, self._cluster.close)

    async def close(self) -> None:
        """Ends connections. Calls that are under way raise `ClientClosed`."""
        self._io.may_finish()
        self._cluster.close()
        self._io.close()

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's `admin-client-metrics`; times in ms."""
        return self._asking.metrics.values()

    async def __aenter__(self) -> "Admin":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
