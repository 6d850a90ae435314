from ottla.base.ids import TopicPartition
from ottla.log.file_names import DELETE_DIR, parse_partition_dir
from ottla.log.files import MarkedDirs
from ottla.testing.memory_disk import MemoryDisk

PARTITION = TopicPartition("orders", 0)


def test_no_name_is_given_out_twice_nor_one_that_is_taken():
    disk = MemoryDisk()
    taken = MarkedDirs(disk, "/data").path_for(PARTITION, DELETE_DIR)
    disk.make_dirs(taken)
    of_next_start = MarkedDirs(disk, "/data")
    paths = [of_next_start.path_for(PARTITION, DELETE_DIR) for _ in range(3)]
    assert len({taken, *paths}) == 4
    assert all(parse_partition_dir(path.removeprefix("/data/")) == (PARTITION, DELETE_DIR) for path in paths)


def test_names_come_from_where_they_are_given():
    marked = MarkedDirs(MemoryDisk(), "/data", lambda: "f" * 32)
    assert marked.path_for(PARTITION, DELETE_DIR) == f"/data/orders-0.{'f' * 32}-delete"
