"""Values that have a schema in a registry: `value.format` is avro, protobuf or json, with `schema.registry.url`.

schema_options   what was asked for, and the schemas that it means: asked for on the driver, once
spark_types      Arrow's types as Spark's
decoding         records to columns, on executors
encoding         rows to records, on executors
"""
