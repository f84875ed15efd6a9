"""Launch constants of the trellis kernels; the Metal text gets them as template integers and repeats none."""

SIMD_WIDTH = 32

SPLITS = 128
"""Row ranges that are summed apart; MLX's column sum then adds their partials."""

SPLITS_A_THREADGROUP = 4
"""What one thread of MLX's column sum adds: the partials of splits y, y + 32, y + 64 and y + 96."""

SUM_ROWS = SPLITS // SPLITS_A_THREADGROUP
"""Rows of first-stage sums, one a lane of the second stage."""

BLOCK = 256
"""T of every row kernel, in weights."""

ROWS_AHEAD = 4
"""Stored rows whose words a lane of a scatter kernel may load before it uses any."""

CODEBOOK_STATES = 4096
"""Entries of a codebook in threadgroup memory, 16 KiB: L is 12 at most."""

CODEBOOK_DOWN_THREADS = {"metal": 512, "cuda": 128, "host": 512}
"""Four simdgroups a block, one for each of four splits. The blocks of a threadgroup share the work of its codebook; an
H200 is the faster the more evenly blocks are dealt out to its 132 processors (docs/speed.md)."""

CODEBOOK_POSITIONS = 8
"""Consecutive positions that a lane of the codebook kernels owns: one block a simdgroup."""

CODEBOOK_LOOKED_UP = 4
"""Of these, those whose codes come from the codebook."""

CODEBOOK_ROWS_AHEAD = 8
"""Stored rows whose words a lane of the codebook kernels may load before it uses any."""

SCATTER_THREADS = 128
SCATTER_SIMDGROUPS = SCATTER_THREADS // SIMD_WIDTH

BALANCED_POSITIONS = 8
"""Consecutive positions that a lane of the balanced scatter kernel owns: one block a simdgroup."""

FOLD_THREADS = 256
"""A simdgroup a column."""

DECODE_THREADS = 256
DECODE_ROWS = 16
"""Rows that a thread of the decode kernel takes, so that a codebook in threadgroup memory is filled for many."""

VALUE_THREADS = 128
