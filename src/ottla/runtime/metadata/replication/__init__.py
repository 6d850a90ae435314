"""How the metadata log gets from its leader to the replicas that follow it.

metadata_leader     what a leader gives to those that fetch
metadata_follower   fetching from the leader
snapshot_receiver   a snapshot of the leader's, part by part
"""
