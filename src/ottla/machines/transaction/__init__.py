"""The transaction coordinator, pure: who may write under a transactional id, and how each transaction ends.

    transaction_coordinator  the machine: commands, replay, timers
    transaction              one transactional id: its producer, its state, and every transition as a function
    states                   the states of a transaction, and what may follow what
    initialising             InitProducerId: a producer id and an epoch for the client that owns the id now
    ending                   EndTxn, in the older protocol and the newer one (KIP-890), and the coordinator's own aborts
    listing                  ListTransactions' filters
    replies                  what commands are answered, and what a writer of markers gets
    settings                 what a cluster's configuration says to the coordinator

Import from the modules.
"""
