"""Replication between brokers.

isr_changes.py        a leader asks the controller for another ISR (AlterPartition), and looks for followers that lag
fetchers.py           which leader is fetched from over which connection
fetcher.py            one connection to a leader, and the partitions that are followed over it
followed.py           one partition that is followed: what came is appended, or its log is cut back
follower_session.py   what a leader knows of the partitions that are wanted (KIP-227)
leader_connections.py       reaching the leaders
"""
