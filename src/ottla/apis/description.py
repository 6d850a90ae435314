"""What is said of an API: who answers it and where, what it needs and counts against, how it fails and is divided.

Functions are named as `"module:function"`, and imported when the first request of their API comes: a node is up before
it needs them all, and this module may be imported by those whose functions it names.
"""

from collections.abc import Callable, Hashable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.security.api_access import Access
from ottla.wire.apis import ApiKey


class Answer(NamedTuple):
    """Which function answers an API on one kind of listener, and which one has looked at the request before it.

    On the listeners of brokers it is called as `ottla.broker.services` says. A controller's is called with the
    `ControllerServer`, what is asked, and two functions for the reply and the failure; one that `takes_connection` with
    the `ControllerServer`, the request's context, the request, and the function for the reply.

    A node with an authorizer calls `check` first, which passes on what the client may ask. Where none is named, the API
    needs nothing, or one right on the cluster.
    """

    function: str
    check: str | None = None
    takes_connection: bool = False


ITSELF: Final = ""


class Entries(NamedTuple):
    """The list `answers` of a response has one entry for each of the request's list `asked`.

    `copied` says what an entry repeats: field of the response to field of the request, `ITSELF` where the request's
    entry is a bare value. `inner` are the entries of an entry, if the error codes are theirs.
    """

    answers: str
    asked: str
    copied: Mapping[str, str]
    inner: "Entries | None" = None


class ErrorReply(NamedTuple):
    """The response that says that a whole request failed, beside its own `error_code`: see `error_responses`.

    Of each list of a response that a version has, the one whose request's list that version has, too, is filled. The
    request's lists are in each struct of its list `inside`, if there is one. Versions from `whole_since` on have an
    error for the whole response only. `unknown` is what Kafka says where it cannot say anything, if that is not the
    schema's default.
    """

    entries: tuple[Entries, ...] = ()
    inside: str | None = None
    whole_since: int | None = None
    unknown: Mapping[str, int] = MappingProxyType({})


class Answers(NamedTuple):
    """A list of the response. `about` are the fields that say what an answer in it is about."""

    list: str
    about: tuple[str, ...] = ()


class Division(NamedTuple):
    """How a request of very many entries is handled in parts, and how the answers to the parts belong together.

    The request is divided along the lists that `asked` names, from the outer to the inner one. `answered` are the lists
    of the response that hold the answers, each with the fields that tell which entry an answer is about.

    Some APIs look at several entries at once, and are divided so that nobody can tell. Those that have one answer for
    entries that mean the same say `joins`; so do those that describe something, which need not be described a hundred
    thousand times because it is asked for as often. Those that refuse what is named twice have `named_once`, and such
    entries come to the same part: it is given the structs around an innermost entry, and the entry itself. `union` is
    a list of the response that has everything once, whichever part it is for.
    """

    asked: tuple[str, ...]
    answered: tuple[Answers, ...]
    joins: bool = False
    named_once: Callable[[tuple[Any, ...], Any], Hashable] | None = None
    union: Answers | None = None


class NamedTopics(NamedTuple):
    """Where a request names topics, for faults that are about one topic (`ottla.node.faults`).

    `lists` are its lists of topics, of which a version has one; null stands for every topic. Requests about several
    groups or transactions have a list in each struct of their list `inside`, in versions that have it. `outcomes` is
    the list of the reply with an outcome for each topic, of APIs that change something for each topic by itself. A
    request that `only_reads` has no effect, and may be handled before it is failed.
    """

    lists: tuple[str, ...] = ("topics",)
    inside: str | None = None
    outcomes: str | None = None
    only_reads: bool = False


class NamedPartitions(NamedTuple):
    """An API that is answered from partitions' logs: the lists in which a request names them, and the fields.

    `number` is `ITSELF` where the list has bare numbers. Versions from `ids_since` on have a `topic_id` for a name.
    """

    topics: str = "topics"
    name: str = "name"
    partitions: str = "partitions"
    number: str = "partition_index"
    ids_since: int | None = None


class Coordinated(NamedTuple):
    """An API that is answered by the coordinator of what `key` names: a group, a transactional id, or several.

    The coordinator keeps its state in a partition of `topic`. `key` is a field of the request, and of each struct of
    its list `inside`, if there is one.
    """

    topic: str
    key: str
    inside: str | None = None


class ServedApi(NamedTuple):
    """One API. It is a tuple because every node makes all of them when it starts, and a tuple is cheap to make."""

    key: ApiKey
    access: Access
    """What a request needs, and what it counts against."""
    broker: Answer | None = None
    """What answers on the listeners of brokers; None where the API is not served there."""
    controller: Answer | None = None
    """The same on the listeners of controllers."""
    may_be_forwarded: bool = False
    """Whether a controller takes requests from brokers, in the name of their clients (KIP-590)."""
    strict_since: int | None = None
    """Of what counts as a change of the cluster: a client that asks in this version or above is refused when it is
    above its limit, an older one is only delayed (KIP-599)."""
    decision: str | None = None
    """The function of the controller machine that decides on a request: see `Controller.decide`."""
    log_lines: str | None = None
    """The function that says what a request has changed, for the log of the controller that decided: from the request
    and the reply to lines."""
    is_telemetry: bool = False
    """Whether it is about metrics of clients (KIP-714): advertised only where they are shown."""
    errors: ErrorReply = ErrorReply()
    """How a request fails as a whole."""
    divisions: tuple[Division, ...] = ()
    """How a huge request is divided: by the first of these that fits its entries.

    An API has some if each entry is answered for itself, and takes long enough that a hundred thousand of them would
    keep others waiting. What is decided as a whole has none: CreateTopics, whose topics are made together or not at
    all, and which refuses more than 10,000 partitions at once as Apache Kafka does; the partitions of one transaction
    in AddPartitionsToTxn; a Fetch, which has one limit of bytes and one session. The last two go through their entries
    in steps of their own.
    """
    topics: NamedTopics | None = None
    """Where a request names topics, for faults; None if it names none."""
    waits_for: NamedPartitions | Coordinated | None = None
    """What a request is answered from: it waits while the log of such a partition is being made."""


def load(function: str) -> Any:
    """The function of that name, `"module:function"`; its module is imported if nobody has yet."""
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)
