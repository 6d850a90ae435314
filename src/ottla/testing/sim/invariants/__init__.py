"""What must hold in a simulated cluster, a module each. Some listen to what clients see, some look at the nodes.

    invariant                 the shape of one
    offsets_have_one_value    whoever sees an offset of a partition sees the same record there
    acknowledged_is_there     no acknowledged record is lost, and none is invented
    once_and_in_order         an idempotent producer's records are there once, in the order in which they were sent
    transactions_are_atomic   all of a transaction is seen, or nothing
    groups_go_on              a member goes on where the group had committed; a partition has one owner in a generation
    images_are_equal          nodes have the same metadata at the same offset; so has one that loads a snapshot
    voters_are_equal          nodes know the same voters at the same offset, where voters are data
    one_leader                one leader in an epoch, of the quorum and of each partition; one vote of a voter
    replicas_match            replicas are the same below the high watermark, those of the metadata too
    compared_logs             how logs are compared
    leaders_to_be_have_all    ISR and eligible leaders have every acknowledged record
    changes_last              a change of the cluster that was confirmed is there in the end

Import from the modules.
"""
