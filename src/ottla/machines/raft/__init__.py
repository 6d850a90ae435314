"""Raft as Kafka does it (KIP-595, KIP-853): who leads the metadata log, and what of it is committed.

    voters      who has a vote, and where to reach them; voter_history who had, by offset
    events      what happens to the machine, and what it orders done about it
    progress    how far each voter has come, and so the high watermark
    machine     the roles and every transition between them

Pure: a driver (`ottla.runtime.metadata`) feeds it events and performs its effects, in order.
"""
