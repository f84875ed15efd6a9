"""Apple's container of compiled Metal functions (`.metallib`): an index of names, and the LLVM bitcode behind each.

The layout was read off the containers in mlx-metal's wheels (versions 0.29 to 0.32). All numbers are little-endian.

    0x00  4 bytes "MTLB"                 0x10  u64 size of the file
    0x18  u64 offset, u64 size           of the function list (the size is that of the records)
    0x48  u64 offset, u64 size           of the bitcode

The function list is a u32 count and as many records: a u32 size of the whole record, then fields of a 4-letter tag, a
u16 size and the content, closed by the tag ENDT. NAME is the function's name, TYPE its kind (2: kernel), HASH the
SHA-256 of its bitcode, OFFT three u64 of which the third is the bitcode's offset, MDSZ its size.
"""

import hashlib
import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

_HEADER = struct.Struct("<4s12xQQQ32xQQ")
_KERNEL = b"\x02"


class MetallibError(ValueError):
    """A file that is not a container of Metal functions, or a damaged one."""


class Container(Mapping[str, bytes]):
    """The kernels of one `.metallib`: name -> bitcode, read and verified when asked for.

    MetallibError: the file is no such container, or damaged. KeyError: no function of that name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise MetallibError(f"{path}: the file is empty, expected a .metallib") from None
        if len(self._data) < _HEADER.size or self._data[:4] != b"MTLB":
            raise MetallibError(f"{path}: begins with {self._data[:4]!r}, expected b'MTLB'")
        _, size, list_at, list_size, code_at, code_size = _HEADER.unpack_from(self._data)
        if size != len(self._data):
            raise MetallibError(f"{path}: holds {len(self._data)} bytes, its header says {size}: fetch it again")
        self._code = self._range("bitcode", code_at, code_size)
        self._records = self._index(self._range("function list", list_at, list_size + 4))

    def _range(self, what: str, at: int, size: int) -> range:
        if at > len(self._data) or size > len(self._data) - at:
            raise MetallibError(
                f"{self.path}: its {what} lies at {at:#x} with {size} bytes, beyond the file's {len(self._data)}"
            )
        return range(at, at + size)

    def _index(self, listed: range) -> dict[str, range]:
        # 17,251 records are a library: this loop reads no more of a record than its size and its name.
        data = self._data[listed.start : listed.stop]
        if len(data) < 4:
            raise MetallibError(f"{self.path}: its function list has {len(data)} bytes, expected 4 or more")
        (count,) = struct.unpack_from("<I", data)
        records: dict[str, range] = {}
        head = struct.Struct("<I4sH").unpack_from
        at, end = 4, len(data)
        for number in range(count):
            if end - at < 10:
                raise MetallibError(f"{self.path}: record {number} of {count} lies beyond the function list")
            size, tag, length = head(data, at)
            if tag != b"NAME" or not 10 + length <= size <= end - at or length < 2:
                raise MetallibError(
                    f"{self.path}: record {number} has size {size} and begins with {tag!r} of {length} bytes, "
                    f"expected a NAME inside the {end - at} bytes left"
                )
            name = data[at + 10 : at + 9 + length].decode("utf-8", "backslashreplace")
            if name in records:
                raise MetallibError(f"{self.path}: two functions are named {name!r}")
            records[name] = range(listed.start + at, listed.start + at + size)
            at += size
        return records

    def _fields(self, name: str, record: range) -> dict[bytes, bytes]:
        data = self._data[record.start : record.stop]
        fields: dict[bytes, bytes] = {}
        at = 4
        while data[at : at + 4] != b"ENDT":
            if len(data) - at < 6 or (size := struct.unpack_from("<H", data, at + 4)[0]) > len(data) - at - 6:
                raise MetallibError(f"{self.path}: the record of {name!r} has no end")
            fields[data[at : at + 4]] = data[at + 6 : at + 6 + size]
            at += 6 + size
        return fields

    def __getitem__(self, name: str) -> bytes:
        fields = self._fields(name, self._records[name])
        sizes = {b"TYPE": 1, b"HASH": 32, b"OFFT": 24, b"MDSZ": 8}
        for tag, size in sizes.items():
            if len(fields.get(tag, b"")) != size:
                raise MetallibError(f"{self.path}: {name!r} has no field {tag.decode()} of {size} bytes")
        if fields[b"TYPE"] != _KERNEL:
            raise MetallibError(f"{self.path}: {name!r} is of kind {fields[b'TYPE'][0]}, expected 2, a kernel")
        _, _, offset = struct.unpack("<3Q", fields[b"OFFT"])
        (size,) = struct.unpack("<Q", fields[b"MDSZ"])
        if offset > len(self._code) or size > len(self._code) - offset:
            raise MetallibError(
                f"{self.path}: the bitcode of {name!r} lies beyond the {len(self._code)} bytes of bitcode"
            )
        begin = self._code.start + offset
        bitcode = self._data[begin : begin + size]
        if hashlib.sha256(bitcode).digest() != fields[b"HASH"]:
            raise MetallibError(f"{self.path}: the bitcode of {name!r} is damaged: its SHA-256 is not the recorded one")
        return bitcode

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
