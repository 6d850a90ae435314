"""The member of a group of the new protocol (KIP-848): the coordinator divides, each member moves at its own pace.

- `consumer_member.py`: its lives, from joining to leaving or being fenced
- `consumer_heartbeat.py`: the one request that it sends
- `topic_names.py`: names of the topics that the coordinator names by id
"""
