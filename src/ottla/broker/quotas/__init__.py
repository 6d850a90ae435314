"""Limits on what clients use, held against their requests.

client_quotas.py    produced and fetched bytes, and the time of the node's thread, by user and client id
"""
