"""What a consumer needs to be a member of a group; no I/O.

- `member.py`: what a consumer and its member expect of each other
- `classic_member.py`: the member of a classic group, with `classic_heartbeats.py`, `classic_leader.py`,
  `classic_requests.py` and `consumer_protocol.py` (what members say to each other)
- `assignors/`: who gets which partition, decided by the leader of a classic group
- `consumer_member.py`: the member of a group of the new protocol, with `consumer_heartbeat.py` and `topic_names.py`
- `group_coordinator.py`, `poll_deadline.py`, `listening.py`: what members of both protocols use
"""
