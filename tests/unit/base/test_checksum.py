import subprocess
import sys

from crc32c import crc32c as of_the_package

from ottla.base.checksum import crc32c


def test_it_is_crc_32c() -> None:
    """The check value of the algorithm, from RFC 3720."""
    assert crc32c(b"123456789") == 0xE3069283


def test_it_takes_any_buffer_and_goes_on_from_a_value() -> None:
    data = bytes(range(256)) * 10
    assert crc32c(memoryview(bytearray(data))) == crc32c(data) == of_the_package(data)
    assert crc32c(data[100:], crc32c(data[:100])) == crc32c(data)


def test_the_package_itself_is_not_imported() -> None:
    """It would import importlib.metadata and much else."""
    path = [entry for entry in sys.path if entry]
    code = f"import sys; sys.path[:0] = {path!r}; import ottla.records.batch; print('crc32c' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"
