"""Where a consumer stands, and where it tells its group that it stands.

positions           positions found, reset, and held against the log of a new leader
offset_reset        where to begin without a position
offset_lookup       offsets by time, and those at the ends of partitions
consumed_offsets    what was consumed, and when it is committed
committing          offsets to and from the group's coordinator
"""
