"""The shape of a packed trellis matrix: bits a weight, state bits, block length, coded axis, layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.core as mx

BITS = (2, 3, 4)
LARGEST_STATE_BITS = 24
"""Up to here every state is a number of float32, which the form state makes of it."""

INTERLEAVED_BLOCK = 256
CODE = "1mad"


@dataclass(frozen=True)
class Geometry:
    """How codes are packed. The layout is that of mlx-bun's trellis artifacts (T 256 and L 12 there).

    k: bits a weight, 2, 3 or 4.
    L: state bits, k to 24.
    T: weights of a tail-biting block; T * k is a multiple of 32 and at least L.
    axis: the coded axis of the layer: 0 stores [in, out] and runs along the output (the down projection), 1 stores
        [out, in] and runs along the input.
    rows, cols: of the stored matrix; cols is a multiple of T.
    in_features, out_features: of the linear layer.
    block_interleave: None for uint32 codes [rows, cols * k / 32]; 2 for two blocks side by side,
        [cols / 512, rows, 48], which k 3, T 256 and axis 0 alone have.

    ValueError: values that do not fit together.
    """

    k: int
    L: int
    T: int
    axis: int
    rows: int
    cols: int
    in_features: int
    out_features: int
    block_interleave: int | None = None

    def __post_init__(self) -> None:
        for name in ("k", "L", "T", "axis", "rows", "cols", "in_features", "out_features"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"Expected {name} as an int but got {value!r} (type {type(value).__name__})")
        self._check_code()
        self._check_matrix()
        if self.block_interleave is not None:
            self._check_interleave()

    def _check_code(self) -> None:
        if self.k not in BITS:
            raise ValueError(f"Expected k of {', '.join(map(str, BITS))} bits a weight but got {self.k}")
        if not self.k <= self.L <= LARGEST_STATE_BITS:
            raise ValueError(f"Expected L of {self.k} (k) to {LARGEST_STATE_BITS} state bits but got {self.L}")
        if self.T < 1:
            raise ValueError(f"Expected T of 1 weight a block or more but got {self.T}")
        if words_per_block(self.T, self.k) * 32 < self.L:
            raise ValueError(f"Expected a block of L = {self.L} bits or more but T * k is {self.T * self.k}: raise T")

    def _check_matrix(self) -> None:
        if self.axis not in (0, 1):
            raise ValueError(f"Expected axis 0 or 1 but got {self.axis}")
        if self.rows < 1:
            raise ValueError(f"Expected 1 stored row or more but got rows={self.rows}")
        if self.cols < 1 or self.cols % self.T:
            raise ValueError(f"Expected cols as a multiple of T = {self.T} but got {self.cols}: whole blocks are coded")
        features = (self.in_features, self.out_features)
        expected = (self.rows, self.cols) if self.axis == 0 else (self.cols, self.rows)
        if features != expected:
            raise ValueError(
                f"Expected in_features, out_features = {expected} for axis {self.axis} with {self.rows} rows and "
                f"{self.cols} cols but got {features}"
            )

    def _check_interleave(self) -> None:
        if self.block_interleave != 2:
            raise ValueError(f"Expected block_interleave None or 2 but got {self.block_interleave!r}")
        if (self.k, self.T, self.axis) != (3, INTERLEAVED_BLOCK, 0):
            raise ValueError(
                f"Expected k 3, T {INTERLEAVED_BLOCK} and axis 0 for block_interleave 2 "
                f"but got k {self.k}, T {self.T} and axis {self.axis}"
            )
        if self.cols % (2 * self.T):
            raise ValueError(f"Expected cols as a multiple of {2 * self.T} for block_interleave 2 but got {self.cols}")

    @property
    def words_per_block(self) -> int:
        """uint32 words of one block."""
        return words_per_block(self.T, self.k)

    @property
    def blocks(self) -> int:
        """Blocks of one stored row."""
        return self.cols // self.T

    @property
    def code_shape(self) -> tuple[int, ...]:
        """The shape of the uint32 codes."""
        if self.block_interleave:
            return (self.blocks // 2, self.rows, 2 * self.words_per_block)
        return (self.rows, self.blocks * self.words_per_block)

    @classmethod
    def from_arrays(
        cls, codes: mx.array, scales: mx.array, *, k: int, L: int, T: int, axis: int, code: str = CODE
    ) -> Geometry:
        """The geometry that arrays of an artifact have, block-interleaved where the codes are 3-D.

        Args:
            codes: uint32 [rows, cols * k / 32], or [groups, rows, 48] for k 3, L 12, T 256, axis 0.
            scales: [rows].
            k, L, T, axis, code: of the artifact's configuration; "1mad" is the one code.

        Raises:
            ValueError: arrays or values that do not fit together.
        """
        if code != CODE:
            raise ValueError(f"Expected code {CODE!r} but got {code!r}: no other codebook is known")
        if not str(codes.dtype).endswith("uint32"):
            raise ValueError(f"Expected codes of uint32 but got {codes.dtype}: view the words as uint32")
        if codes.ndim not in (2, 3) or 0 in codes.shape:
            raise ValueError(f"Expected codes [rows, words] or [groups, rows, 48] but got shape {tuple(codes.shape)}")
        rows = codes.shape[-2]
        if tuple(scales.shape) != (rows,):
            raise ValueError(f"Expected scales of shape {(rows,)}, one a stored row, but got {tuple(scales.shape)}")
        if codes.ndim == 3:
            return cls._interleaved(codes, k, L, T, axis)
        if k not in BITS or codes.shape[1] * 32 % k:
            raise ValueError(f"Expected rows of whole {k}-bit weights but got {codes.shape[1]} words a row: check k")
        cols = codes.shape[1] * 32 // k
        features = (rows, cols) if axis == 0 else (cols, rows)
        return cls(k, L, T, axis, rows, cols, *features)

    @classmethod
    def _interleaved(cls, codes: mx.array, k: int, L: int, T: int, axis: int) -> Geometry:
        groups, rows, words = codes.shape
        if (k, L, T, axis) != (3, 12, INTERLEAVED_BLOCK, 0) or words != 48:
            raise ValueError(
                f"Expected 3-D codes with k 3, L 12, T {INTERLEAVED_BLOCK}, axis 0 and 48 words "
                f"but got k {k}, L {L}, T {T}, axis {axis} and {words} words"
            )
        cols = groups * 2 * T
        return cls(k, L, T, axis, rows, cols, rows, cols, block_interleave=2)


def words_per_block(T: int, k: int) -> int:
    """uint32 words of a block of T weights of k bits. ValueError: T * k is no multiple of 32."""
    if T * k % 32:
        raise ValueError(f"Expected T * k as a multiple of 32 bits but got {T} * {k} = {T * k}")
    return T * k // 32
