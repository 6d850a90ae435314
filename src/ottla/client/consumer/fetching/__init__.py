"""Fetches ahead of the application, and what is kept of them.

fetcher             which partitions are fetched where; fetches out, chunks in
fetch_sessions      what a broker remembers of our fetches (KIP-227)
fetch_errors        what is done about the errors of a fetch
fetched_chunks      what was fetched and not handed out, bounded in bytes
arrow_chunks        chunks as Arrow's record batches
"""
