"""What must hold in a simulated cluster, a module each. Some listen to what clients see, some look at the nodes.

    invariant                 the shape of one, and when it is looked into
    all_invariants            those of a run
    offsets_have_one_value    whoever sees an offset of a partition sees the same record there
    acknowledged_is_there     no acknowledged record is lost, and none is invented
    gone                      which records may be gone, of topics that forget
    enough_replicas_have_it   min.insync.replicas logs hold a record when it is acknowledged
    batches_are_sound         every batch matches its checksum, and was sent by somebody
    once_and_in_order         an idempotent producer's records are there once, in the order in which they were sent
    transactions_are_atomic   all of a transaction is seen, or nothing
    exactly_once              of what is consumed, transformed and produced there is one outcome
    groups_continue              a member continues where the group had committed; a partition has one owner in a
    generation coordinators_match_logs   a coordinator is what its log says; one that has lost its partition stays
    closed images_are_equal          nodes have the same metadata at the same offset; so has one that loads a snapshot
    voters_are_equal          nodes know the same voters at the same offset, where voters are data one_leader
    one leader in an epoch, of the quorum and of each partition; one vote of a voter replicas_match            replicas
    are the same below the high watermark, those of the metadata too compared_logs             how logs are compared
    offsets_in_order          log start, last stable, high watermark, end; what was committed every later leader has
    derived_state             producers, aborted transactions and epochs of a replica follow from its log
    electable_replicas_are_complete   ISR and eligible leaders have every acknowledged record isr_follows
    who is taken into an ISR follows the leader in the leader's epoch directories_are_known     the metadata name the
    directory in which a replica is changes_last              a change of the cluster that was confirmed is there in the
    end changes_end               reassignments and moves come to an end replicas                  the replicas of a
    cluster, and their files, as invariants look at them

Import from the modules.
"""
