"""Record batches: the bytes that travel from producer to disk to consumer unchanged.

    batch, header         the broker's view: headers read and patched in place, checksums; records are not touched
    reader, builder       records out of a batch and into one
    record, kernel        what is done once per record: `_fast` where it could be compiled, else its twin `_slow`
    faults, columns       what both kernels say, take and give
    compression           the codecs' table; gzip_member, xerial, lz4_frame and zstd_frame are its rows; large_buffers
                          is where they put what is large
    validate              what a leader checks in a produced batch, and what it changes in it
    control               transaction markers, and the quorum's records
    fetched               fetched bytes to a consumer's records
    visibility            what a consumer is shown: no control batches, no aborted transactions
    legacy                magic 0 and 1, read only
    arrow                 batches to Arrow and back (needs pyarrow)

Import from the modules: each costs what it needs.
"""
