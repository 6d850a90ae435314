"""Runs the compiled decoder over memory that ends where no page is: a read past the end is the end of the process.

    python guarded_avro.py FIRST_SEED CASES

A program of its own, so that a test outlives it.
"""

import json
import sys
from contextlib import suppress
from random import Random

from ottla.schemas.avro import _fast
from ottla.schemas.avro.columns import column_plan
from ottla.schemas.avro.parsing import Parser
from ottla.schemas.avro.plan import decoding_plan, encoding_plan
from ottla.schemas.avro.types import AvroType
from ottla.schemas.faults import CannotDecode
from ottla.schemas.schema import DEFAULT_LIMITS, InvalidSchema
from tests.property.records.guarded_memory import Guarded
from tests.property.schemas.random_avro import changed, random_schema
from tests.property.schemas.random_values import NoValue, damaged, random_value


def run(guarded: Guarded, random: Random) -> None:
    schema = random_schema(random)
    try:
        writer, reader = (_parsed(one) for one in (schema, changed(random, schema)))
        plan = decoding_plan(writer, reader)
        content = _fast.Encoder(encoding_plan(writer)).encode(random_value(random, writer))
    except (InvalidSchema, CannotDecode, NoValue):
        return
    decoder = _fast.Decoder(plan)
    columns, bindings = None, {}
    with suppress(CannotDecode):
        columns = _fast.Columns(column_plan(reader))
        bindings = {1: columns.bind(plan)}
    for _ in range(8):
        data = damaged(random, content)
        if len(data) > 200_000:
            continue
        with suppress(CannotDecode):
            decoder.decode(guarded.hold(data))
        if columns is None:
            continue
        with suppress(CannotDecode):
            columns.append(bindings[1], guarded.hold(data))
        framed = b"\0\0\0\0\1" + data
        cut = random.choice((len(framed), random.randrange(len(framed) + 1)))
        offsets = (0).to_bytes(4, "little") + cut.to_bytes(4, "little")
        columns.append_framed(guarded.hold(framed[:cut]), offsets, 0, 1, bindings)
        if random.random() < 0.2:
            columns.append_null()
    if columns is not None:
        columns.finish()


def _parsed(schema: object) -> AvroType:
    return Parser(DEFAULT_LIMITS, as_new=False).parse(json.dumps(schema))


def main(first_seed: int, cases: int) -> None:
    guarded = Guarded()
    for seed in range(first_seed, first_seed + cases):
        sys.stderr.write(f"\rseed {seed}")  # The last one that is told of is the one to look at.
        run(guarded, Random(seed))
    sys.stdout.write(f"{cases} cases\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
