"""A producer without I/O. `core` is what the faces in `client/blocking` and `client/aio` hold.

core                  sends, topics, identity, the end
append                the work per record: a record into the open batch of its partition (compiled where possible)
accumulator           queues of batches, memory, linger
batch                 one batch, and what becomes of its records
topic_queues          one topic's queues and open batches
partition_queue       one partition's batches and sequence
partitioning          where records without a key go
sender                Produce requests, answers, retries
produce_request       one such request, in any version
sequences             idempotence
transactions          the state of transactions; transaction_requests is what it asks of coordinators
arrow_rows            rows of Arrow's into batches; forwarded_batch a batch of a log on its way to another
serializing           keys and values to bytes before they are sent
metrics               what is counted
producer_settings     the settings, checked against each other
"""
