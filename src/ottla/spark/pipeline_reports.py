"""What a streaming query says of itself, as a record of a compacted topic: its key is the query's id, its value JSON.

The listener of `reporting` writes them, `ottla pipelines` reads them. The last record of a query is all that a
reader needs. Fields that a reader does not know are passed over, missing ones have their defaults.
"""

import json
from typing import Any, Final, NamedTuple

REPORTS_TOPIC: Final = "__ottla_spark_pipelines"

STARTED: Final = "started"
RUNNING: Final = "running"
IDLE: Final = "idle"
ENDED: Final = "ended"
FAILED: Final = "failed"
LIVE: Final = (STARTED, RUNNING, IDLE)


class PipelineReport(NamedTuple):
    id: str
    """The query's, which is in its checkpoint."""
    run_id: str
    """Another one for each start."""
    name: str | None
    application: str
    host: str
    state: str
    at_ms: int
    """When this was so."""
    started_ms: int
    batch: int = -1
    rows: int = 0
    """Of the last micro-batch."""
    input_rows_per_s: float = 0.0
    rows_per_s: float = 0.0
    """As the last micro-batch was worked off."""
    batch_ms: int = 0
    offsets: dict[str, dict[str, int]] = {}  # noqa: RUF012  # never changed
    """By topic and partition: up to where the query has read."""
    state_rows: int = 0
    state_bytes: int = 0
    watermark: str | None = None
    sink: str = ""
    error: str | None = None
    """What ended it, or ended the run before."""

    @property
    def label(self) -> str:
        return self.name or self.id

    def encode(self) -> bytes:
        return json.dumps(self._asdict(), ensure_ascii=False, allow_nan=False).encode()

    @classmethod
    def decode(cls, value: bytes) -> "PipelineReport":
        """Raises `ValueError` for a record that is not a report."""
        try:
            read: Any = json.loads(value)
            return cls(**{name: read[name] for name in cls._fields if name in read})
        except (TypeError, KeyError, UnicodeDecodeError) as problem:
            raise ValueError(f"not a report of a pipeline: {problem}") from None
