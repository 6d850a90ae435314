"""The metadata quorum. Controllers, the Raft protocol among them, and the `__cluster_metadata` log."""

from ottla.config.bounds import Shaped, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, Flag, Int, List, Long, Text

_ADDRESS = r"\[?[0-9A-Za-z%._:-]*\]?:[0-9]+"

SETTINGS = (
    # Members
    List("controller.quorum.voters", (), Shaped(rf"[0-9]+@{_ADDRESS}", "a list of id@host:port"), HIGH,
         "The fixed set of voters as `id@host:port`, in a cluster whose quorum does not change by itself.",
         acted_on=True),
    List("controller.quorum.bootstrap.servers", (), Shaped(_ADDRESS, "a list of host:port"), HIGH,
         "Controllers to ask first where the quorum is, as `host:port`; for clusters with a dynamic quorum (KIP-853).",
         acted_on=True),
    Flag("controller.quorum.auto.join.enable", False, ANY, LOW,
         "Whether a controller that is not a voter asks to become one by itself (KIP-1186).", acted_on=True),

    # Raft
    Int("controller.quorum.election.timeout.ms", 1000, at_least(0), HIGH,
        "How long a candidate waits for votes before it begins another election.", acted_on=True),
    Int("controller.quorum.election.backoff.max.ms", 1000, at_least(0), HIGH,
        "Longest random pause before another election, which keeps candidates from blocking each other.",
        acted_on=True),
    Int("controller.quorum.fetch.timeout.ms", 2000, at_least(0), HIGH,
        "Time without a fetch that works after which a voter stands for election, or a leader without a majority "
        "resigns.", acted_on=True),
    Int("controller.quorum.request.timeout.ms", 2000, at_least(0), MEDIUM,
        "How long a voter waits for another's reply.", acted_on=True),
    Int("controller.quorum.retry.backoff.ms", 20, at_least(0), LOW,
        "Pause before a failed request to another voter is tried again.", acted_on=True),
    Int("controller.quorum.append.linger.ms", 25, at_least(0), MEDIUM,
        "How long the leader gathers records before it writes them in one flush. Only a value that is set is waited "
        "for: else the leader writes at once, and gathers what comes while it writes.", acted_on=True),
    Int("controller.quorum.fetch.max.bytes", 1_048_576, at_least(1), LOW,
        "Most bytes of the metadata log that one fetch brings.", acted_on=True),
    Int("controller.quorum.fetch.snapshot.max.bytes", 1_048_576, at_least(1), LOW,
        "Most bytes of a snapshot that one request brings.", acted_on=True),
    Int("controller.socket.timeout.ms", 30_000, ANY, MEDIUM,
        "How long a broker waits on a connection to the controller."),

    # The metadata log and its snapshots
    Text("metadata.log.dir", None, ANY, HIGH,
         "Directory of the metadata log. Not given, the first of the log directories.", acted_on=True),
    Int("metadata.log.segment.bytes", 1_073_741_824, at_least(8_388_608), HIGH,
        "Size at which a segment of the metadata log is closed.", acted_on=True),
    Long("metadata.log.segment.ms", 604_800_000, ANY, HIGH,
         "Age at which a segment of the metadata log is closed.", acted_on=True),
    Long("metadata.log.max.record.bytes.between.snapshots", 20_971_520, at_least(1), HIGH,
         "Bytes of new records after which the next snapshot is written.", acted_on=True),
    Long("metadata.log.max.snapshot.interval.ms", 3_600_000, at_least(0), HIGH,
         "Time after which a snapshot is written if there are new records; 0 is never by time.", acted_on=True),
    Long("metadata.max.retention.bytes", 104_857_600, ANY, HIGH,
         "Size of the metadata log and its snapshots above which old ones are deleted.", acted_on=True),
    Long("metadata.max.retention.ms", 604_800_000, ANY, HIGH,
         "Age at which old parts of the metadata log and old snapshots are deleted.", acted_on=True),
    Int("metadata.max.idle.interval.ms", 500, at_least(0), LOW,
        "Time between the no-op records of a leader, which show that its followers keep up; 0 writes none (KIP-835).",
        acted_on=True),
)
