"""Records between a terminal and topics.

`console_producer`          kafka-console-producer: lines to records
`console_producer_options`  its options
`line_reader`               a line to key, value and headers
`console_consumer`          kafka-console-consumer: records to lines
`console_consumer_options`  its options
`formatters`                a record to what is printed
`coordinator_formatters`    records of Kafka's own topics as JSON
`schema_console`            the same with schemas of a registry, as Confluent's tools
`client_properties`         settings of clients from files and key=value options
"""
