"""Cleaning throughput, ours beside Apache Kafka's on the same log: a tenth of the keys unique.

python bench/cleaning.py                       1 GB of 1 KB records in batches of 16 (needs Java)
python bench/cleaning.py --record 100 --batch 160 --gb 0.3
python bench/cleaning.py --without-kafka
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from ottla.base.ids import TopicPartition
from ottla.log.checkpoint import read_offsets
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleaningDone
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.records.builder import BatchBuilder
from ottla.testing.clock import FixedClock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

PARTITION = TopicPartition("orders", 0)
MB = 1_000_000
KAFKA_TIMEOUT_S = 600
CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=100 << 20)


def make_log(directory: Path, *, size: int, record: int, batch: int) -> None:
    chance = random.Random(1)
    now_ms = int(time.time() * 1000)
    log = PartitionLog.open(OsDisk(), str(directory), PARTITION, CONFIG, FixedClock(now_ms))
    values = [chance.randbytes(record - 20) for _ in range(1000)]
    for _ in range(size // (record * batch)):
        builder = BatchBuilder()
        for _ in range(batch):
            builder.append(now_ms, b"key-%09d" % chance.randrange(size // record // 10), chance.choice(values))
        log.append_as_leader(builder.build(), 0)
    log.roll()
    log.close()


def clean_here(directory: Path) -> float:
    """MB/s of one cleaning, as a cleaning process does it."""
    log = PartitionLog.open(OsDisk(), str(directory), PARTITION, CONFIG, FixedClock(), clean=True)
    log.advance_high_watermark(log.log_end_offset)
    now_ms = int(time.time() * 1000)
    job = plan_cleaning(log, cleanable(log, None, now_ms), CleanerLimits(), now_ms, bytes(16))
    begun_s = time.monotonic()
    *_, done = clean(OsDisk(), job)
    assert isinstance(done, CleaningDone)
    return done.stats.bytes_read / MB / (time.monotonic() - begun_s)


def clean_with_kafka(directory: Path, home: Path) -> float:
    """What Kafka says of its own cleaning of the same log."""
    from tests.interop.apache_kafka import ApacheKafka

    config = {"log.cleaner.backoff.ms": 300, "log.cleaner.min.cleanable.ratio": 0, "log.cleanup.policy": "compact"}
    options = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
    with ApacheKafka(home, config=config, java_options=options) as kafka:
        kafka.tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--create", "--topic", PARTITION.topic)
        kafka.stop()
        theirs = kafka.data / "orders-0"
        topic_id = (theirs / "partition.metadata").read_bytes()
        shutil.rmtree(theirs)
        shutil.copytree(directory, theirs)
        (theirs / "partition.metadata").write_bytes(topic_id)
        (kafka.data / "replication-offset-checkpoint").unlink()
        kafka.start()
        deadline = time.monotonic() + KAFKA_TIMEOUT_S
        while PARTITION not in read_offsets(OsDisk(), str(kafka.data / "cleaner-offset-checkpoint")):
            assert time.monotonic() < deadline, "Kafka has not cleaned the log"
            time.sleep(0.1)
        time.sleep(1)
        kafka.stop()
    told = re.findall(r"MB of log processed in [\d.,]+ seconds \(([\d.,]+) MB/sec\)", (home / "node.log").read_text())
    return float(told[0].replace(",", "")) * (1 << 20) / MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--record", type=int, default=1000, help="bytes a record")
    parser.add_argument("--batch", type=int, default=16, help="records a batch")
    parser.add_argument("--without-kafka", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ottla-cleaning-") as place:
        directory = Path(place) / "orders-0"
        make_log(directory, size=int(options.gb * 1000 * MB), record=options.record, batch=options.batch)
        print(
            f"{options.gb} GB, records of {options.record} bytes, {options.batch} a batch, a tenth of the keys unique"
        )
        theirs = None if options.without_kafka else clean_with_kafka(directory, Path(place) / "kafka")
        ours = clean_here(directory)
        print(f"  ottla          {ours:8.0f} MB/s")
        if theirs is not None:
            print(f"  Apache Kafka   {theirs:8.0f} MB/s   ratio {ours / theirs:.1f}")


if __name__ == "__main__":
    main()
