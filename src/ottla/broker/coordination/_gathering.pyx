# cython: language_level=3
"""Takes commands whose records are bytes into a coordinator's open batch, compiled: see `gathering`.

What it does for a command is what `CoordinatedPartition.submit_encoded` does, which it leaves to that wherever anything
is not as usual: everything that may make it say no is looked at before anything is changed, and a command only reads
while it decides.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from ottla.base.slots cimport number_at, put, slot, value_at


cdef class Gathering:
    """Made with the classes of all that it reads."""

    cdef type led_class, log_class, batch_class, partition_class, state_class, settings_class, rules_class
    cdef object active
    cdef Py_ssize_t led_state, offline, machine, log, clock, timers
    cdef Py_ssize_t failed_s, partition, open_batch, is_awaited
    cdef Py_ssize_t transaction, size, waiting, writer
    cdef Py_ssize_t state, settings, has_enough_replicas, rules, max_message_bytes

    def __init__(
        self, type led, active, type log, type batch, type partition, type state, type settings, type rules
    ):
        self.led_class, self.log_class, self.batch_class, self.partition_class = led, log, batch, partition
        self.state_class, self.settings_class, self.rules_class, self.active = state, settings, rules, active
        self.led_state = slot(led, "state")
        self.offline = slot(led, "offline")
        self.machine = slot(led, "machine")
        self.log = slot(led, "_log")
        self.clock = slot(led, "_clock")
        self.timers = slot(led, "_timers")
        self.failed_s = slot(log, "_failed_s")
        self.partition = slot(log, "partition")
        self.open_batch = slot(log, "_open")
        self.is_awaited = slot(log, "_is_awaited")
        self.transaction = slot(batch, "transaction")
        self.size = slot(batch, "size")
        self.waiting = slot(batch, "waiting")
        self.writer = slot(batch, "writer")
        self.state = slot(partition, "state")
        self.settings = slot(partition, "settings")
        self.has_enough_replicas = slot(state, "has_enough_replicas")
        self.rules = slot(settings, "rules")
        self.max_message_bytes = slot(rules, "max_message_bytes")

    def gather(self, led, command):
        """See `gathering.gather_nothing`."""
        cdef int64_t size
        if type(led) is not self.led_class or value_at(led, self.led_state) != <PyObject *> self.active:
            return False
        log = <object> value_at(led, self.log)
        if (
            type(log) is not self.log_class
            or <object> value_at(log, self.failed_s) is not None
            or command.subject in <set> value_at(led, self.offline)
        ):
            return False
        batch = <object> value_at(log, self.open_batch)
        partition = <object> value_at(log, self.partition)
        if type(partition) is not self.partition_class:
            return False
        if batch is not None:
            if type(batch) is not self.batch_class or <object> value_at(batch, self.transaction) is not None:
                return False
        state, settings = <object> value_at(partition, self.state), <object> value_at(partition, self.settings)
        if type(state) is not self.state_class or <object> value_at(state, self.has_enough_replicas) is not True:
            return False
        rules = <object> value_at(settings, self.rules)
        if type(settings) is not self.settings_class or type(rules) is not self.rules_class:
            return False
        machine, now_ms = <object> value_at(led, self.machine), (<object> value_at(led, self.clock)).now_ms()
        try:
            reply, records, timers = command.decide(machine, now_ms)
        except Exception:  # It will be raised again, where it is dealt with.
            return False
        if records is None or not records.encoded:
            return False
        is_first = batch is None
        if is_first:
            batch = log.begin_batch(None)
            if type(batch) is not self.batch_class:
                return False
        size = records.size
        if number_at(batch, self.size) + size > number_at(rules, self.max_message_bytes):
            return False
        command.reply = reply
        try:
            records.replay(machine)
        except Exception as problem:
            led.on_replay_failed(command, problem)
            return True
        if is_first:
            put(log, self.open_batch, batch)
        append = (<object> value_at(batch, self.writer)).append
        for key, value in records.encoded:
            append(now_ms, key, value)
        put(batch, self.size, number_at(batch, self.size) + size)
        (<list> value_at(batch, self.waiting)).append(command)
        if timers:
            (<object> value_at(led, self.timers)).set(timers)
        if <object> value_at(log, self.is_awaited) is not True:
            log.write_soon()
        return True
