# cython: language_level=3
"""Appends the batches of a produce request that are plain, compiled: see `plain_produce`.

What it does for a batch is what `Produce` would do, in the same order. Whatever is not as usual, it leaves to `Produce`:
the request, if that is found out before anything is appended, and else the batch.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from ottla.base.slots cimport copy_of, number_at, put, slot, value_at
from ottla.broker.partitions._partition_end cimport PartitionEnd

cdef enum:
    # Of a header, which is a tuple.
    LENGTH = 1
    ATTRIBUTES = 5
    LAST_OFFSET_DELTA = 6
    MAX_TIMESTAMP = 8
    RECORD_COUNT = 12

cdef int64_t NOT_NOW = -1


cdef class PlainAppends:
    """Made with the classes of all that it reads, and prototypes of what it answers with. See `plain_produce`."""

    cdef PartitionEnd end
    cdef object internal, taken, of_topic
    cdef type rules_class, traffic_class, topic_class, data_class
    # The request
    cdef Py_ssize_t topic_name, topic_id, partition_data, index, records
    # The reply
    cdef Py_ssize_t answer_index, answer_base_offset, answer_log_start, response_name, response_id, response_answers
    # The partition
    cdef Py_ssize_t traffic, rules, plain, produce_requests, bytes_in, messages_in

    def __init__(
        self, PartitionEnd end, request, response, type partition, type settings, type rules, type traffic, taken,
        of_topic, internal,
    ):
        self.end, self.internal, self.taken, self.of_topic = end, internal, taken, of_topic
        self.rules_class, self.traffic_class = rules, traffic
        self.topic_class, self.data_class = request.TopicProduceData, request.PartitionProduceData
        self.topic_name = slot(request.TopicProduceData, "name")
        self.topic_id = slot(request.TopicProduceData, "topic_id")
        self.partition_data = slot(request.TopicProduceData, "partition_data")
        self.index = slot(request.PartitionProduceData, "index")
        self.records = slot(request.PartitionProduceData, "records")
        self.answer_index = slot(response.PartitionProduceResponse, "index")
        self.answer_base_offset = slot(response.PartitionProduceResponse, "base_offset")
        self.answer_log_start = slot(response.PartitionProduceResponse, "log_start_offset")
        self.response_name = slot(response.TopicProduceResponse, "name")
        self.response_id = slot(response.TopicProduceResponse, "topic_id")
        self.response_answers = slot(response.TopicProduceResponse, "partition_responses")
        self.traffic = slot(partition, "traffic")
        self.rules = slot(settings, "rules")
        self.plain = slot(rules, "plain")
        self.produce_requests = slot(traffic, "produce_requests")
        self.bytes_in = slot(traffic, "bytes_in")
        self.messages_in = slot(traffic, "messages_in")

    def append_all(self, partitions, list topics, int64_t acks, bint uses_ids, int64_t now_ms, list grown, begin, arguments):
        """See `plain_produce.append_none`."""
        cdef list found = [], answers = [], answered = []
        cdef tuple one
        cdef Py_ssize_t place = 0
        cdef int64_t base_offset
        produce = None
        if not -1 <= acks <= 1:
            return None
        for topic in topics:
            if type(topic) is not self.topic_class or type(<object> value_at(topic, self.partition_data)) is not list:
                return None
            if uses_ids:
                name = partitions.metadata.topic_name(<object> value_at(topic, self.topic_id))
            else:
                name = <object> value_at(topic, self.topic_name)
            if name is None or name in self.internal:
                return None
            for data in <list> value_at(topic, self.partition_data):
                one = self.look(partitions, name, data, acks, now_ms)
                if one is None:
                    return None
                found.append(one)
        for topic in topics:
            answers = []
            for data in <list> value_at(topic, self.partition_data):
                one = <tuple> found[place]
                place += 1
                partition = one[0]
                try:
                    base_offset = self.end.append(
                        partition, <object> value_at(data, self.records), (<tuple> one[1])[LAST_OFFSET_DELTA],
                        (<tuple> one[1])[MAX_TIMESTAMP], <tuple> one[1],
                    )
                except Exception as problem:
                    produce = produce or begin(*arguments)
                    answers.append(produce.on_failed(partition, problem))
                    continue
                if base_offset == NOT_NOW:
                    produce = produce or begin(*arguments)
                    answers.append(produce.append(partition, data))
                    continue
                self.count(<object> value_at(partition, self.traffic), <tuple> one[1])
                grown.append(partition)
                log = <object> value_at(partition, self.end.log)
                answer = copy_of(self.taken)
                put(answer, self.answer_index, <object> value_at(data, self.index))
                put(answer, self.answer_base_offset, base_offset)
                put(answer, self.answer_log_start, <object> value_at(log, self.end.log_start_offset))
                if acks and number_at(log, self.end.high_watermark) < number_at(log, self.end.log_end_offset):
                    produce = produce or begin(*arguments)
                    produce.maybe_await(partition, number_at(log, self.end.log_end_offset), answer)
                answers.append(answer)
            of_topic = copy_of(self.of_topic)
            if uses_ids:
                put(of_topic, self.response_id, <object> value_at(topic, self.topic_id))
            else:
                put(of_topic, self.response_name, <object> value_at(topic, self.topic_name))
            put(of_topic, self.response_answers, answers)
            answered.append(of_topic)
        return answered, produce

    cdef tuple look(self, partitions, name, data, int64_t acks, int64_t now_ms):
        """The partition that data goes to and the header of its batch; None if there is anything else to say."""
        cdef PyObject *found
        if type(data) is not self.data_class:
            return None
        found = PyDict_GetItem(partitions, (name, <object> value_at(data, self.index)))
        if found == NULL or type(<object> found) is not self.end.partition_class:
            return None
        partition = <object> found
        state = <object> value_at(partition, self.end.state)
        settings = <object> value_at(partition, self.end.settings)
        if type(state) is not self.end.state_class or type(settings) is not self.end.settings_class:
            return None
        if acks == -1 and <object> value_at(state, self.end.has_enough_replicas) is not True:
            return None
        rules = <object> value_at(settings, self.rules)
        if type(rules) is not self.rules_class or type(<object> value_at(partition, self.traffic)) is not self.traffic_class:
            return None
        header = (<object> value_at(rules, self.plain)).header_of(<object> value_at(data, self.records), now_ms)
        if header is None or (<tuple> header)[ATTRIBUTES] != 0:
            return None
        return partition, header

    cdef int count(self, traffic, tuple header) except -1:
        put(traffic, self.produce_requests, number_at(traffic, self.produce_requests) + 1)
        put(traffic, self.bytes_in, number_at(traffic, self.bytes_in) + <int64_t> header[LENGTH])
        put(traffic, self.messages_in, number_at(traffic, self.messages_in) + <int64_t> header[RECORD_COUNT])
        return 0
