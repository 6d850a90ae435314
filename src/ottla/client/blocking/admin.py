"""The blocking admin: every call of `client/admin` as a method that waits for its outcome.

Safe for any number of threads. Types and names of arguments are those of the call itself.
"""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from ottla.client.admin.asking import Asking
from ottla.client.admin.calls import BlockingCalls
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError
from ottla.client.io.loop_thread import LoopThread
from ottla.client.promise import spawn
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from os import PathLike

    from ottla.client.keywords import AdminKeywords

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(call: Callable[Concatenate[Asking, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate["Admin", P], T]:
    @wraps(call)
    def method(admin: "Admin", /, *args: P.args, **keywords: P.kwargs) -> T:
        try:
            return admin._loop.ask(lambda: spawn(call(admin._asking, *args, **keywords)))
        except KafkaError as problem:
            failure = admin._asking.failure_of(call.__name__, problem)
            raise failure from (None if failure is problem else problem)

    return method


class Admin(BlockingCalls, make=_blocking):
    """Administers a cluster.

        with Admin(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("clicks", partitions=3)]).raise_first()

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
        self._loop = LoopThread("ottla-admin", settings)
        with self._loop.lock, self._loop.step:
            self._cluster = Cluster(self._loop.world, settings)
            self._asking = Asking(self._cluster)
            self._cluster.offer_metrics("admin.client", self._asking.metrics.values)
        self._loop.end_with(self, self._cluster.close)
        self._loop.on_torn = self._cluster.close

    def close(self) -> None:
        """Ends connections and the client's thread. Calls that are under way raise `ClientClosed`."""
        if self._loop.is_forked:
            return
        self._loop.end(self._cluster.close)
        self._loop.stop()

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's `admin-client-metrics`; times in ms."""
        self._loop.check_not_forked()
        with self._loop.lock, self._loop.step:
            return self._asking.metrics.values()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
