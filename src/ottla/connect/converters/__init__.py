"""Converters: the bytes of keys, values and headers to columns, and back, as Kafka Connect's do.

converter       what a converter is; rows that differ in schema
by_name         Kafka's class names and short names to converters
plain           strings, bytes, booleans, numbers
json            JSON with and without schemas: the converter, its options and caches
json_columns    columns to JSON, whole columns at a time
json_rows       JSON to rows, by a schema or without one
json_schemas    Connect's schemas as JSON and back
registered      what converters on a schema registry have in common; the registry's client is given
avro            Confluent's AvroConverter
avro_schemas    Connect's schemas as Avro's and back
json_schema     Confluent's JsonSchemaConverter
json_schema_schemas  Connect's schemas as JSON Schema and back
protobuf        Confluent's ProtobufConverter
protobuf_schemas  Connect's schemas as Protobuf's and back
"""
