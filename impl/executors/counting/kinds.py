"""Names of what a counted kernel tells by number: the numbers are those of runtime/kinds.h and runtime/atomics.h."""

_ROUTES = ("shuffle_down", "shuffle_up", "shuffle_xor", "shuffle", "shuffle_rotate_down", "shuffle_rotate_up")
_JOINING = ("sum", "product", "max", "min", "and", "or", "xor")
BARRIER, TRANSFER = 39, 41

OPERATIONS: dict[int, str] = {
    **dict(enumerate(_ROUTES)),
    **dict(enumerate((f"quad_{name}" for name in ("shuffle_down", "shuffle_up", "shuffle_xor", "shuffle")), 6)),
    **dict(enumerate((f"quad_{name}" for name in ("shuffle_rotate_down", "shuffle_rotate_up")), 10)),
    12: "shuffle_and_fill_down",
    13: "shuffle_and_fill_up",
    **dict(enumerate(_JOINING, 16)),
    **dict(enumerate((f"quad_{name}" for name in _JOINING), 24)),
    32: "prefix_sum",
    33: "prefix_product",
    34: "quad_prefix_sum",
    35: "quad_prefix_product",
    36: "ballot",
    37: "broadcast_first",
    38: "quad_broadcast_first",
    40: "matrix_multiply_accumulate",
}
"""Operations across lanes; a broadcast is a shuffle, and votes, masks of active lanes and questions for the first lane
are ballots. Barriers and the transfers of matrices are counted elsewhere."""

ATOMICS: tuple[str, ...] = (
    *("load", "store", "exchange", "compare_exchange", "fetch_add", "fetch_sub", "fetch_max", "fetch_min"),
    *("fetch_and", "fetch_or", "fetch_xor", "max", "min"),
)
READS_ALONE, WRITES_ALONE = 0, 1
"""The atomics that do not do both."""
