"""Producer, consumer and admin: cores without I/O, under a blocking and an asyncio face.

    errors            what clients raise
    settings          from keywords, a mapping or a file to checked values
    serialization     keys and values to bytes and back
    topic_partition   partitions, places in them, brokers
    membership/       being a member of a group

Import from the modules; this package imports nothing, so that a program pays only for what it uses.
"""
