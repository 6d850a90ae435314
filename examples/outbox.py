"""A transactional outbox: a row in a database and the event about it, never one without the other.

Two systems cannot be written to in one step. So the application writes the event into a table of the same database, in
the same transaction as the row; a relay reads that table in order, sends, and deletes what the broker has acknowledged.
If the relay dies in between, it sends again: consumers leave out the ids that they have seen.
"""

import json
import sqlite3

from cluster import a_cluster
from ottla import Consumer, NewTopic, Producer


def open_database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE accounts (owner TEXT PRIMARY KEY, balance INTEGER)")
    database.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, event TEXT)")
    return database


def deposit(database: sqlite3.Connection, owner: str, amount: int) -> None:
    """The row and its event, in one transaction of the database."""
    with database:
        database.execute(
            "INSERT INTO accounts VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET balance = balance + ?",
            (owner, amount, amount),
        )
        event = json.dumps({"type": "deposited", "owner": owner, "amount": amount})
        database.execute("INSERT INTO outbox (key, event) VALUES (?, ?)", (owner, event))


def relay(database: sqlite3.Connection, producer: Producer, *, dies_before_deleting: bool = False) -> int:
    """Sends what is in the outbox, oldest first. Returns how many events it sent."""
    rows = database.execute("SELECT id, key, event FROM outbox ORDER BY id").fetchall()
    deliveries = [
        producer.send("accounts", event.encode(), key=owner.encode(), headers=[("id", b"%d" % event_id)])
        for event_id, owner, event in rows
    ]
    for delivery in deliveries:
        delivery.result()  # raises if the broker has not taken it: then nothing is deleted
    if rows and not dies_before_deleting:
        with database:
            database.execute("DELETE FROM outbox WHERE id <= ?", (rows[-1][0],))
    return len(rows)


def balances(bootstrap: str) -> tuple[dict[str, int], int]:
    """What a consumer makes of the events, and how many it had seen before."""
    seen: set[bytes] = set()
    repeated = 0
    found: dict[str, int] = {}
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("accounts", 0)])
        while records := consumer.poll(timeout=5.0):
            for record in records:
                event_id = dict(record.headers)["id"]
                if event_id in seen:
                    repeated += 1
                    continue
                seen.add(event_id)
                event = json.loads(record.value)
                found[event["owner"]] = found.get(event["owner"], 0) + event["amount"]
    return found, repeated


def main() -> None:
    database = open_database()
    with a_cluster(NewTopic("accounts", partitions=1)) as bootstrap:
        with Producer(bootstrap_servers=bootstrap) as producer:
            deposit(database, "ada", 10)
            deposit(database, "bob", 5)
            relay(database, producer, dies_before_deleting=True)
            deposit(database, "ada", 7)
            relay(database, producer)
        found, repeated = balances(bootstrap)
    print(f"the database: {dict(database.execute('SELECT * FROM accounts ORDER BY owner'))}")
    print(f"the events:   {found}, after {repeated} that came twice")


if __name__ == "__main__":
    main()
