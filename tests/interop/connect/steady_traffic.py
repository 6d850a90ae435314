"""Other clients of the same nodes: a producer of a moderate rate and a consumer in a group, in a process of their own.

    with SteadyTraffic(bootstrap):
        ...     # on leaving, every record that was acknowledged has been read

`python steady_traffic.py BOOTSTRAP REPLICAS` runs until its standard input is closed, and prints how many records went
through. It fails if one is missing or comes out of order.
"""

import subprocess
import sys
import threading
import time
from types import TracebackType

from ottla import Admin, Consumer, NewTopic, Producer

TOPIC = "steady-traffic"
PARTITIONS = 3
PER_SECOND = 400
VALUE_BYTES = 200
WAIT_S = 120.0


class SteadyTraffic:
    def __init__(self, bootstrap: str, replicas: int) -> None:
        self._words = [sys.executable, __file__, bootstrap, str(replicas)]

    def __enter__(self) -> "SteadyTraffic":
        self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "begun\n", "the traffic did not begin"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            printed, _ = self._process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            printed, _ = self._process.communicate()
        print(printed)
        if kind is None:
            assert self._process.returncode == 0, printed


def main(bootstrap: str, replicas: int) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(NewTopic(TOPIC, PARTITIONS, replicas))
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    print("begun", flush=True)
    sent = [0] * PARTITIONS
    following = [0] * PARTITIONS
    delays_ms = []
    with (
        Producer(bootstrap_servers=bootstrap, acks="all", linger_ms=5, compression_type="lz4") as producer,
        Consumer(bootstrap_servers=bootstrap, group_id=TOPIC, auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe([TOPIC])
        begun_s = time.monotonic()
        deadline_s = None
        while following != sent or not is_over.is_set():
            if is_over.is_set():
                deadline_s = deadline_s or time.monotonic() + WAIT_S / 2
                producer.flush()
                assert time.monotonic() < deadline_s, f"sent {sent}, read {following}"
            else:
                for _ in range(max(0, min(PER_SECOND, int((time.monotonic() - begun_s) * PER_SECOND) - sum(sent)))):
                    partition = sum(sent) % PARTITIONS
                    producer.send(TOPIC, b"%d %s" % (sent[partition], b"x" * VALUE_BYTES), partition=partition)
                    sent[partition] += 1
            for record in consumer.poll(0.05):
                number = int(record.value.split()[0])
                # A consumer whose node was killed may go back to what it has committed, and never forward.
                assert number <= following[record.partition], f"{record.partition}: {number} after {following}"
                following[record.partition] = max(following[record.partition], number + 1)
                delays_ms.append(time.time() * 1000 - record.timestamp)
    delays_ms.sort()
    middle, late = delays_ms[len(delays_ms) // 2], delays_ms[len(delays_ms) * 99 // 100]
    print(f"steady traffic: {sum(sent):,} records sent and read, in {time.monotonic() - begun_s:.0f} s; "
          f"middle {middle:.0f} ms, 99 % {late:.0f} ms")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
