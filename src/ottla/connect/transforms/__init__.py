"""Transforms and predicates under Kafka's class names, on batches of records.

transform       what a transform is, and one of a record's key or value
field_paths     ways to a field, as KIP-821 writes them
fields          transforms of fields: ExtractField, HoistField, InsertField, MaskField, ReplaceField, ValueToKey
shapes          transforms of schemas: Flatten, SetSchemaMetadata
casting         Cast
moments         transforms of times: TimestampConverter, TimestampRouter
routing         transforms of topics and headers: DropHeaders, Filter, HeaderFrom, InsertHeader, RegexRouter
envelopes       Debezium's change events: ExtractNewRecordState, ByLogicalTableRouter
outbox          Debezium's outbox tables: EventRouter
predicates      HasHeaderKey, RecordIsTombstone, TopicNameMatches
java_patterns   Java's regular expressions and replacements
by_name         the table of them all
chain           a connector's `transforms` and `predicates`, one behind the other
"""
