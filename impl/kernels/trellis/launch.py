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

CODEBOOK_STATES = 4096
"""Entries of a codebook in threadgroup memory, 16 KiB: L is 12 at most."""

CODEBOOK_DOWN_THREADS = 256
"""Eight simdgroups: four splits of two column groups, whose partials fill the codebook's memory exactly."""

CODEBOOK_POSITIONS = 16
"""Consecutive positions that a lane of the codebook kernels owns: two blocks a simdgroup."""

CODEBOOK_ROWS_AHEAD = 2
"""Input rows whose words a lane loads before it uses any."""

SCATTER_THREADS = 128
SCATTER_SIMDGROUPS = SCATTER_THREADS // SIMD_WIDTH

BALANCED_POSITIONS = 8
"""Consecutive positions that a lane of the balanced scatter kernel owns: one block a simdgroup."""

FOLD_THREADS = 256
FOLD_COLUMNS = 4
"""Columns that a simdgroup of the fold sums, as in MLX's col_reduce_looped at 32 x 32."""

DECODE_THREADS = 256
DECODE_ROWS = 16
"""Rows that a thread of the decode kernel takes, so that a codebook in threadgroup memory is filled for many."""

VALUE_THREADS = 128
