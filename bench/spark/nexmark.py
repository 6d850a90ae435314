"""Nexmark from topics, with Spark: events a second, and a second of a core, for each question; peers where they can.

    python bench/spark/nexmark.py                     500,000 events
    python bench/spark/nexmark.py --events 100000 --only 0 5 12

All three topics are read from the beginning by a streaming query with `Trigger.AvailableNow`, which decodes JSON and
throws its answers away. Before that, each answer is checked on a smaller house: the stream's rows are those of the
same question asked of the topics as tables. An event counts if the question reads its topic. Peers (quixstreams,
bytewax) read the same topic, in one process.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import pyarrow as pa  # noqa: E402
from compare import print_table  # noqa: E402
from peers import PEERS, peer_rate  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from rates import run_to_the_end  # noqa: E402

import ottla  # noqa: E402
import ottla.spark  # noqa: E402
from ottla.admin import NewTopic  # noqa: E402
from ottla.client.blocking.admin import Admin  # noqa: E402
from ottla.spark.nexmark.events import Events, closing, events  # noqa: E402
from ottla.spark.nexmark.queries import QUERIES  # noqa: E402
from ottla.spark.nexmark.records import SCHEMAS, Streams, from_records, to_records  # noqa: E402
from ottla.testing import Broker  # noqa: E402

BEGAN_MS = 1_700_000_000_000
RATE = 10_000.0
CHUNK = 100_000
PARTITIONS = 2
CHECKED = 20_000
CORES = 2


def main() -> None:
    options = _parser().parse_args()
    with Broker({"log.segment.bytes": 1 << 30}) as broker:
        fill(broker, "checked", CHECKED, rate=500.0)
        counts = fill(broker, "measured", options.events, rate=RATE)
        spark = ottla.spark.session(
            "nexmark",
            master=f"local[{CORES}]",
            **{"spark.sql.shuffle.partitions": CORES, "spark.ui.enabled": False, "spark.ui.showConsoleProgress": False},
        )
        spark.sparkContext.setLogLevel("OFF")
        rows = []
        for number in options.only:
            query = QUERIES[number]
            check(spark, broker, number)
            read = sum(counts[kind] for kind in query.reads)
            live = streams(spark, broker, "measured", is_live=True)
            cost = run_to_the_end(query.answer(live), query.output_mode)
            peers = [told_rate(broker, peer, number, counts["bids"]) for peer in PEERS]
            rates = f"{read / cost.seconds:,.0f}", f"{read / cost.cpu_s:,.0f}"
            rows.append([f"{number}: {query.asks}", *rates, *peers])
            told = f"{cost.seconds:.1f} s, {cost.cpu_s:.1f} of the processors, the answer is right"
            print(f"    question {number}: {told}", file=sys.stderr, flush=True)
        spark.stop()
    print_table(["question", "events/s", "events/s of a core", *(f"{peer}, of a core" for peer in PEERS)], rows)


def fill(broker: Broker, house: str, count: int, *, rate: float) -> dict[str, int]:
    """Makes the three topics of a house, and says how many events each has."""
    counts = dict.fromkeys(SCHEMAS, 0)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(f"{house}-{kind}", partitions=PARTITIONS) for kind in SCHEMAS]).raise_first()
    with ottla.Producer(bootstrap_servers=broker.bootstrap) as producer:

        def send(of: Events) -> None:
            for kind, (keys, values) in to_records(of).items():
                rows = pa.table({"key": keys.cast(pa.binary()), "value": values.cast(pa.binary())})
                producer.send_arrow(f"{house}-{kind}", rows)
                counts[kind] += rows.num_rows

        for first in range(0, count, CHUNK):
            send(events(first, min(CHUNK, count - first), seed=1, began_ms=BEGAN_MS, rate=rate))
        send(closing(BEGAN_MS + 10_000_000))
        producer.flush(60.0)
    return counts


def streams(spark: SparkSession, broker: Broker, house: str, *, is_live: bool) -> Streams:
    def rows(kind: str) -> DataFrame:
        reader: Any = spark.readStream if is_live else spark.read
        records = (
            reader.format("ottla")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", f"{house}-{kind}")
            .option("startingOffsets", "earliest")
            .load()
        )
        return from_records(records, kind)

    return Streams(*map(rows, SCHEMAS))


def check(spark: SparkSession, broker: Broker, number: int) -> None:
    """Asks the stream and the tables. Question 12's windows are of the time of reading: their sums are compared."""
    query = QUERIES[number]
    told: list[tuple[Any, ...]] = []
    live = query.answer(streams(spark, broker, "checked", is_live=True))
    run_to_the_end(live, query.output_mode, lambda rows, _: told.extend(map(tuple, rows.collect())))
    wanted = [tuple(row) for row in query.answer(streams(spark, broker, "checked", is_live=False)).collect()]
    if number == 4:
        told = list({row[0]: row for row in sorted(told, key=lambda row: row[2])}.values())
    if number == 12:
        told, wanted = (list({row[:2]: row for row in rows}.values()) for rows in (told, wanted))
        same = sum(row[2] for row in told) == sum(row[2] for row in wanted)
    else:
        same = Counter(row for row in told if -1 not in row) == Counter(row for row in wanted if -1 not in row)
    assert wanted, f"question {number} has no answer"
    assert same, f"question {number}: the stream says {len(told)} rows, the tables {len(wanted)}, and they differ"


def told_rate(broker: Broker, peer: str, number: int, bids: int) -> str:
    rate = peer_rate(peer, broker.bootstrap, "measured-bids", number, bids)
    return "-" if rate is None else f"{rate:,.0f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--only", type=int, nargs="+", choices=list(QUERIES), default=list(QUERIES))
    return parser


if __name__ == "__main__":
    main()
