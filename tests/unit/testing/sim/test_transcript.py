from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.transcript import Transcript


def test_two_transcripts_are_alike_if_all_their_bytes_and_times_are():
    def digest(at_us: int, data: bytes) -> str:
        transcript = Transcript()
        transcript.note(at_us, "client sends", data)
        return transcript.digest()

    assert digest(1, b"a") == digest(1, b"a")
    assert len({digest(1, b"a"), digest(2, b"a"), digest(1, b"b")}) == 3


def test_a_disk_is_noted_file_by_file():
    disk = MemoryDisk()
    disk.make_dirs("/data/orders-0")
    disk.open("/data/orders-0/b", create=True).write_at(0, b"12")
    disk.open("/data/a", create=True)
    transcript = Transcript()
    transcript.note_files(1_500_000, disk.files())
    assert [line.split()[:3] for line in transcript.lines] == [
        ["1.500000", "/data/a", "0"],
        ["1.500000", "/data/orders-0/b", "2"],
    ]
