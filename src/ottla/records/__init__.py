"""Record batches: the bytes that travel from producer to disk to consumer unchanged."""
