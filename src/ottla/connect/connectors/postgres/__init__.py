"""PostgreSQL's changes, as Debezium 3.6 gives them (docs/connect/postgresql.md).

    options       the connector's options, under Debezium's names
    catalogue     what the database says of its types and tables
    texts         PostgreSQL's text of one value: times, intervals, arrays, hstore
    columns       many such texts to a column of Arrow
    types         which schema a type has, and how its texts become a column
    defaults      the default of a column, from its expression
    pgoutput      the messages of the server's output plugin, split into columns
    envelopes     schemas of keys and values; columns to Debezium's records
    signals       rows of a table that ask for snapshots, and how far such a snapshot is
    offsets       where the connector is, in Debezium's form; what a new start skips
    transactions  begins and ends as records, and the place of each change in its transaction
    changes       messages in, records out: the whole of streaming, without the network
    chunks        a snapshot in chunks by primary key, between two watermarks (DBLog)
    connection    psycopg: connections, slot, publication, and errors in plain words
    source        the connector: snapshot and streaming, `start`, `poll`, `committed`, `stop`

All but the last two are pure.
"""
