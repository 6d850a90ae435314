"""One partition's replication, as pure state machines.

leader.py           the leader's view of its followers: high watermark, acknowledgements, and the ISR that it wants
following.py        a follower's view of its leader: what to fetch next, what to do with what came,
                    and where the two logs part (KIP-101, KIP-279)
"""
