"""The next rows are made while Spark takes the ones before.

A worker writes each batch to Java through a socket that holds a small part of it. As long as Java is busy the worker
waits in that write, and other threads of its may run: one makes the next batch meanwhile, which takes about half as
long as Java does.
"""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from ottla.spark.worker_process import end_quietly_if_java_left

T = TypeVar("T")
_END = object()


def one_ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items. While the caller has one, the next is made on another thread: one more is there at most.

    What making an item raises is raised in its place. When it ends, early or not, nothing of it runs any more.
    """
    item: T | object = next(items, _END)
    if item is _END:
        return
    with ThreadPoolExecutor(1, "ottla-ahead") as other_thread:
        while item is not _END:
            making = other_thread.submit(next, items, _END)
            try:
                yield item  # type: ignore[misc]  # it is not the end
            except GeneratorExit as leaving:
                wait([making])
                items.close()
                end_quietly_if_java_left(leaving)
                raise
            item = making.result()
