"""kafka-transactions: what becomes of transactions, and ending those that hang.

`transactions`  its commands
`hanging`       transactions that no coordinator will ever end
"""
