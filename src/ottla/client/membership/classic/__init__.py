"""The member of a classic group (KIP-62): all members meet at a barrier, and one of them divides the partitions.

- `classic_member.py`: its states and what moves it between them
- `classic_heartbeats.py`, `classic_leader.py`, `classic_requests.py`: its parts
- `consumer_protocol.py`: what members say to each other inside the coordinator's requests
"""
