"""Settings: one row each, and everything that follows from a row.

    tables/      the rows: what exists, for brokers, topics, producers, consumers and admin clients
    setting      what a row is made of
    values       types, and text to value
    bounds       what a value may be
    parse        a whole set of properties, checked, with all problems at once
    properties   Java's file format
    topic        a topic's settings, resolved against its broker's; listener_values a listener's, over the general ones
    scopes       which tables make up whose settings

Import from the modules; this package imports nothing, so that a tool pays only for what it uses.
"""
