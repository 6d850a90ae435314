"""The compiled kernel has the names and types of its pure twin."""

from ottla.records._slow import ColumnReader as ColumnReader
from ottla.records._slow import ConsumerRecord as ConsumerRecord
from ottla.records._slow import FetchedRecords as FetchedRecords
from ottla.records._slow import OffsetMap as OffsetMap
from ottla.records._slow import Record as Record
from ottla.records._slow import RecordReader as RecordReader
from ottla.records._slow import RecordWriter as RecordWriter
from ottla.records._slow import is_sound as is_sound
from ottla.records._slow import scan as scan
