"""The codec: the same bytes always, bits that other readers agree with, and no file that does harm."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_assay.fixtures import codec
from mlx_assay.fixtures.tensor import DTYPES

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def raw(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(BITS[array.dtype.itemsize])


def every_encoding(dtype: np.dtype[Any]) -> np.ndarray:
    """All encodings of one and two bytes; of wider dtypes, every high half with two low halves."""
    if dtype.itemsize <= 2:
        return np.arange(1 << (8 * dtype.itemsize), dtype=BITS[dtype.itemsize]).view(dtype)
    high = np.arange(1 << 16, dtype=np.uint64) << np.uint64(8 * dtype.itemsize - 16)
    both = np.concatenate([high, high + np.uint64(1)])
    return both.astype(BITS[dtype.itemsize]).view(dtype)


def sample() -> dict[str, np.ndarray]:
    tensors = {name: every_encoding(dtype)[:24].reshape(2, 3, 4) for name, dtype in DTYPES.items()}
    return {**tensors, "scalar": np.array(7, np.int32), "none": np.zeros((0, 3), np.float32)}


def file_of(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize("name", DTYPES)
def test_every_encoding_comes_back(name: str) -> None:
    array = every_encoding(DTYPES[name])
    back = codec.decode(codec.encode({"x": array}, {"why": "all"})).tensors["x"]
    assert back.dtype == array.dtype
    assert np.array_equal(raw(back), raw(array))


def test_shapes_and_metadata_come_back() -> None:
    back = codec.decode(codec.encode(sample(), {"b": "2", "a": '\u00b5\n"', "": ""}))
    assert {name: array.shape for name, array in back.tensors.items()} == {n: a.shape for n, a in sample().items()}
    assert back.metadata == {"b": "2", "a": '\u00b5\n"', "": ""}
    assert all(array.flags.writeable for array in back.tensors.values())


def test_a_strided_array_is_stored_by_value() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[::-2, 1::2].T
    assert np.array_equal(codec.decode(codec.encode({"x": array}, {})).tensors["x"], array)


def test_bytes_do_not_depend_on_order() -> None:
    forward = codec.encode(sample(), {"a": "1", "b": "2", "c": "3"})
    backward = codec.encode(dict(reversed(sample().items())), {"c": "3", "b": "2", "a": "1"})
    assert forward == backward
    assert (len(forward) - sum(array.nbytes for array in sample().values())) % codec.ALIGNMENT == 0


def test_the_form_is_pinned() -> None:
    header = b'{"__metadata__":{"k":"v"},"x":{"data_offsets":[0,4],"dtype":"BF16","shape":[2]}}'
    by_hand = struct.pack("<Q", 80) + header + bytes.fromhex("803f c17f")
    array = np.array([0x3F80, 0x7FC1], np.uint16).view(DTYPES["bfloat16"])
    assert len(header) == 80
    assert codec.encode({"x": array}, {"k": "v"}) == by_hand


def test_every_tensor_is_aligned() -> None:
    header, _ = codec._split(codec.encode(sample(), {}))
    for name, array in sample().items():
        assert header[name]["data_offsets"][0] % array.dtype.itemsize == 0


def test_torch_reads_the_same_bits(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch, the second reader, is not installed")
    from safetensors.torch import load_file

    path = tmp_path / "sample.safetensors"
    codec.save(path, sample(), {"a": "1", "b": "2"})
    loaded = load_file(path)
    assert loaded.keys() == sample().keys()
    for name, array in sample().items():
        other = loaded[name].reshape(-1)
        assert tuple(loaded[name].shape) == array.shape
        assert other.view(torch.uint8).numpy().tobytes() == array.tobytes()


def test_mlx_reads_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "sample.safetensors"
    tensors = {name: array for name, array in sample().items() if array.dtype != np.float64}
    codec.save(path, tensors, {"a": "1", "b": "2"})
    loaded, metadata = mx.load(str(path), return_metadata=True)
    assert metadata == {"a": "1", "b": "2"}
    assert loaded.keys() == tensors.keys()
    for name, array in tensors.items():
        assert tuple(loaded[name].shape) == array.shape
        bits = loaded[name].reshape(-1).view({1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}[array.itemsize])
        assert np.array_equal(np.array(bits), raw(array))


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mlx.safetensors"
    mx.save_safetensors(str(path), {"b": mx.array([1.5, -0.0]).astype(mx.bfloat16), "a": mx.arange(3)}, {"k": "v"})
    archive = codec.load(path)
    assert raw(archive.tensors["b"]).tolist() == [0x3FC0, 0x8000]
    assert archive.tensors["a"].tolist() == [0, 1, 2]
    assert archive.metadata == {"k": "v"}


BROKEN = {
    "empty": (b"", "8 bytes of header length"),
    "short": (b"\x01\0\0\0", "8 bytes of header length"),
    "header beyond the file": (struct.pack("<Q", 3) + b"{}", "length reads 3"),
    "huge header": (struct.pack("<Q", 2**64 - 1) + b"{}", "length reads 18446744073709551615"),
    "header above the limit": (file_of(b"{" + b" " * codec.HEADER_LIMIT + b"}"), "length reads"),
    "no object": (file_of([]), "starts with"),
    "leading space": (file_of(b" {}"), "starts with"),
    "no UTF-8": (file_of(b'{"\xff":1}'), "utf-8"),
    "trailing text": (file_of(b"{}{}"), "Extra data"),
    "NaN": (file_of(b'{"x":NaN}'), "NaN"),
    "deep": (file_of(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested"),
    "duplicate tensor": (file_of(b'{"x":1,"x":1}'), "stands twice"),
    "duplicate field": (file_of(b'{"x":{"dtype":"F32","dtype":"F32"}}'), "stands twice"),
    "duplicate metadata": (file_of(b'{"__metadata__":{"a":"1","a":"1"}}'), "stands twice"),
    "metadata of numbers": (file_of({"__metadata__": {"a": 1}}), "map text to text"),
    "metadata list": (file_of({"__metadata__": ["a"]}), "map text to text"),
    "no entry": (file_of({"x": 3}), "dtype, shape and data_offsets"),
    "missing field": (file_of({"x": {"dtype": "F32", "shape": []}}), "dtype, shape and data_offsets"),
    "surplus field": (file_of({"x": {**entry(), "y": 0}}, bytes(8)), "dtype, shape and data_offsets"),
    "unknown dtype": (file_of({"x": entry("F8_E4M3", (8,))}, bytes(8)), "Expected a dtype"),
    "dtype list": (file_of({"x": {**entry(), "dtype": ["F32"]}}, bytes(8)), "Expected a dtype"),
    "negative dimension": (file_of({"x": entry(shape=(-1, -2))}, bytes(8)), "from 0 up"),
    "bool dimension": (file_of({"x": entry(shape=(True, 2))}, bytes(8)), "from 0 up"),
    "float dimension": (file_of({"x": entry(shape=(2.0,))}, bytes(8)), "from 0 up"),
    "huge rank": (file_of({"x": entry(shape=(1,) * 17 + (2,))}, bytes(8)), "rank"),
    "huge empty shape": (file_of({"x": entry(shape=(0, 2**62, 2**62), offsets=(0, 0))}), "Expected a size"),
    "size too small": (file_of({"x": entry(shape=(3,))}, bytes(8)), "Expected 12 bytes"),
    "size too large": (file_of({"x": entry(shape=(1,))}, bytes(8)), "Expected 4 bytes"),
    "falling offsets": (file_of({"x": entry(offsets=(8, 0))}, bytes(8)), "rising offsets"),
    "one offset": (file_of({"x": entry(offsets=(0,))}, bytes(8)), "rising offsets"),
    "offset outside": (file_of({"x": entry(offsets=(4, 12))}, bytes(8)), "within 8 bytes"),
    "overlap": (file_of({"x": entry(), "y": entry(offsets=(4, 12))}, bytes(12)), "overlap"),
    "same span": (file_of({"x": entry(), "y": entry()}, bytes(8)), "overlap"),
    "hole at the start": (file_of({"x": entry(offsets=(4, 12))}, bytes(12)), "hole"),
    "hole between": (file_of({"x": entry(), "y": entry(offsets=(12, 20))}, bytes(20)), "hole"),
    "surplus data": (file_of({"x": entry()}, bytes(9)), "the file holds 9"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_a_clear_error(name: str, tmp_path: Path) -> None:
    data, message = BROKEN[name]
    path = tmp_path / "broken.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        codec.load(path)


@settings(max_examples=600, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4),
    st.sampled_from(["flip", "insert", "delete", "header"]),
)
def test_mutated_files_give_the_content_or_a_value_error(edits: list[tuple[int, int]], how: str) -> None:
    tensors = {
        "a": np.arange(4, dtype=np.float32),
        "b": np.arange(3, dtype=np.int8),
        "c": np.arange(2, dtype=np.uint32),
    }
    data = bytearray(codec.encode(tensors, {"k": "v", "l": "w"}))
    header_end = 8 + struct.unpack_from("<Q", data)[0]
    for position, value in edits:
        place = position % (header_end if how == "header" else len(data))
        data[place : place + (how != "insert")] = b"" if how == "delete" else bytes([value])
    try:
        archive = codec.decode(bytes(data))
    except ValueError:
        return
    again = codec.decode(codec.encode(archive.tensors, archive.metadata))
    assert again.metadata == archive.metadata
    assert again.tensors.keys() == archive.tensors.keys()
    for name, array in archive.tensors.items():
        assert again.tensors[name].dtype == array.dtype
        assert again.tensors[name].shape == array.shape
        assert again.tensors[name].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"x": np.zeros(2, np.complex64)}, {}, "complex64"),
        ({"x": np.zeros(2, ">f4")}, {}, "Expected one of"),
        ({"__metadata__": np.zeros(2, np.float32)}, {}, "tensor's name"),
        ({}, {"a": 1}, "text only"),
    ],
)
def test_what_cannot_be_written_is_a_type_error(tensors: Any, metadata: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        codec.encode(tensors, metadata)


def test_a_header_above_the_limit_is_not_written() -> None:
    with pytest.raises(ValueError, match="bytes at most"):
        codec.encode({}, {"why": "x" * codec.HEADER_LIMIT})
