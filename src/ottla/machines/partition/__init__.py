"""One partition's replication, as pure state machines.

leader.py           the leader's view of its replicas: high watermark, acknowledgements, and the ISR that it wants
follower.py         what a leader knows of one follower, from its fetches
isr_proposal.py     a change of the ISR that the controller has been asked for
following.py        a follower's view of its leader: what to fetch next, and what to do with what came
truncation.py       where two logs part (KIP-101, KIP-279)
"""
