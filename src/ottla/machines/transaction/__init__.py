"""The transaction coordinator, pure: who may write under a transactional id, and how each transaction ends.

    states         the states of a transaction, and what may follow what
    transaction    one transactional id: its producer, its state, and every transition as a function
    settings       what a cluster's configuration says to the coordinator
    replies        what commands are answered, and what a writer of markers is told
    initialising   InitProducerId: a producer id and an epoch for whoever owns the transactional id now
    ending         EndTxn, in the older protocol and in the newer one (KIP-890), and aborts by the coordinator itself
    listing        ListTransactions' filters
    coordinator    the machine: commands, replay, timers

Import from the modules.
"""
