"""The codec and the edge encodings at their limits: the last size that is taken, the first that is not."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from mlx_assay.fixtures import codec
from mlx_assay.fixtures.encoding import FORMATS, encoded

MEBIBYTE = 1048576


def file_of(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + body


def one(shape: Any, offsets: Any, body: bytes) -> np.ndarray:
    header = {"x": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}
    return codec.decode(file_of(json.dumps(header).encode(), body)).tensors["x"]


def test_a_header_of_a_mebibyte_is_the_last_that_is_read() -> None:
    assert codec.decode(file_of(b"{}".ljust(MEBIBYTE))).tensors == {}
    with pytest.raises(ValueError, match="its length reads 1048577"):
        codec.decode(file_of(b"{}".ljust(MEBIBYTE + 1)))


def test_a_header_of_a_mebibyte_is_the_last_that_is_written() -> None:
    empty = len(codec.encode({}, {"k": ""}).rstrip()) - 8
    data = codec.encode({}, {"k": "x" * (MEBIBYTE - empty)})
    assert len(data) == MEBIBYTE + 8
    assert codec.decode(data).metadata["k"] == "x" * (MEBIBYTE - empty)
    with pytest.raises(ValueError, match="Expected a header of 1048576 bytes at most but it takes 1048584"):
        codec.encode({}, {"k": "x" * (MEBIBYTE - empty + 1)})


@pytest.mark.parametrize("length", range(8))
def test_data_begin_at_a_multiple_of_eight_bytes(length: int) -> None:
    data = codec.encode({"x": np.arange(2, dtype=np.float64)}, {"k": "v" * length})
    (size,) = struct.unpack_from("<Q", data)
    assert size % 8 == 0
    assert len(data) == 8 + size + 16
    assert data[8 : 8 + size].rstrip() == data[8 : 8 + size].rstrip(b" ")


def test_eight_bytes_hold_a_length_and_no_header() -> None:
    with pytest.raises(ValueError, match=r"Expected a header that starts with '\{' but got b''"):
        codec.decode(bytes(8))


def test_sixteen_dimensions_are_the_most() -> None:
    assert one([1] * 16, [0, 4], bytes(4)).shape == (1,) * 16
    with pytest.raises(ValueError, match="Expected a rank of 16 at most for 'x' but got 17"):
        one([1] * 17, [0, 4], bytes(4))


def test_an_empty_array_has_dimensions_that_numpy_can_hold() -> None:
    assert one([0, 2**48], [0, 0], b"").shape == (0, 2**48)
    with pytest.raises(ValueError, match=f"Expected a size of {2**48} at most"):
        one([0, 2**48 + 1], [0, 0], b"")


@pytest.mark.parametrize("shape", ["", {}, [1.0], [True], [-1], None])
def test_a_shape_is_a_list_of_integers_from_zero_up(shape: Any) -> None:
    with pytest.raises(ValueError, match="Expected a list of integers from 0 up for 'x'"):
        one(shape, [0, 4], bytes(4))


def test_metadata_may_be_null() -> None:
    assert codec.decode(file_of(b'{"__metadata__":null}')).metadata == {}


def test_keys_are_text() -> None:
    with pytest.raises(TypeError, match="Expected metadata of text only but got 1: 'x'"):
        codec.encode({}, {1: "x"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="Expected text other than '__metadata__' as a tensor's name but got 1"):
        codec.encode({1: np.zeros(1, np.float32)}, {})  # type: ignore[dict-item]


EDGES = {
    "float32": (0x7F7FFFFE, 0x7F7FFFFF, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF),
    "float16": (0x7BFE, 0x7BFF, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF),
    "bfloat16": (0x7F7E, 0x7F7F, 0x7F81, 0x7FBF, 0x7FC0, 0x7FFF),
}
NAMES = ("below-largest", "largest", "signalling-nan", "signalling-nan-payload", "quiet-nan", "quiet-nan-payload")


@pytest.mark.parametrize("dtype", EDGES)
def test_edges_beyond_the_finite_have_these_bits(dtype: str) -> None:
    bits = encoded(dtype, *NAMES)
    assert bits.view(f"u{bits.dtype.itemsize}").tolist() == list(EDGES[dtype])


def test_the_fields_of_a_double() -> None:
    double = FORMATS["float64"]
    assert (double.width, double.sign) == (64, 1 << 63)
    assert struct.pack(">Q", double.one) == struct.pack(">d", 1.0)
    assert struct.pack(">Q", double.infinity) == struct.pack(">d", float("inf"))
    assert (double.unit, double.quiet) == (1 << 52, 1 << 51)
