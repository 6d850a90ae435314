"""Changes of MariaDB and MySQL, as Debezium 3.5 gives them (docs/connect/mysql.md).

    options       the connectors' options, under Debezium's names
    catalogue     what `information_schema` says of tables
    binlog        events of the binary log, and what TABLE_MAP says of columns
    rows          rows of many events to columns of Arrow
    json_binary   MySQL's binary JSON to text
    types         which schema a type has; values of the log and of queries to columns
    tables        the version of a table that a change has, from the log and the catalogue
    envelopes     Debezium's `source`; the rest is `postgres.envelopes`
    gtids         sets of GTIDs
    offsets       where the connector is, in Debezium's form; what a new start skips
    changes       events in, records out: the whole of streaming, without the network
    chunks        a snapshot in chunks by primary key (DBLog)
    connection    PyMySQL: connections, the stream of the log, and errors in plain words
    source        the connectors: snapshot and streaming, `start`, `poll`, `stop`

All but the last two are pure.
"""
