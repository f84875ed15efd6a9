"""Node ids: the names under which pytest knows cases."""

CASE_MARK = "::test_mlx_assay["
"""What node ids of cases have in common; where the suite lies outside of rootdir, they name no file."""


def is_case(node_id: str) -> bool:
    """Whether a node id is one of a case."""
    return CASE_MARK in node_id


def case_id(node_id: str) -> str:
    """The case id inside a node id."""
    return node_id.partition(CASE_MARK)[2].removesuffix("]")
