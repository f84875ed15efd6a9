"""The order of additions: trees against sums written out, the diagnosis of known ones, and the verb."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.judging.order import PROBED, diagnose
from mlx_assay.fixtures.codec import save
from mlx_assay.oracles.accumulation import Groups, Lanes, Tree, same_bits
from mlx_assay.oracles.fused import fma
from mlx_assay.oracles.trees import known, mlx_all, mlx_column_two_pass, mlx_row

ROWS = 64
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def wild(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers of many sizes: another order of adding them hardly ever gives the same bits."""
    return np.asarray(rng.standard_normal(shape) * np.exp(3 * rng.standard_normal(shape)), np.float32)


def plain(values: np.ndarray, order: str) -> np.float32:
    """A sum written out without the trees' code."""
    numbers = list(values)
    if order == "sequential":
        total = np.float32(0)
        for number in numbers:
            total = np.float32(total + number)
        return total
    while len(numbers) > 1:
        half = len(numbers) // 2
        pairs = zip(numbers[0::2], numbers[1::2], strict=True)
        if order == "descending":
            pairs = zip(numbers[:half], numbers[half:], strict=True)
        numbers = [np.float32(a + b) for a, b in pairs]
    return np.float32(numbers[0])


def row_of_mlx(values: np.ndarray) -> np.float32:
    """A row of 5,000 in MLX's row reduction: 1,024 threads read four at a time; simdgroups ascend, then their sums."""
    threads = [np.float32(0)] * 1024
    for i, value in enumerate(values):
        thread = i // 4 % 1024
        threads[thread] = np.float32(threads[thread] + value)
    sums = [plain(np.array(threads[i : i + 32]), "ascending") for i in range(0, 1024, 32)]
    return plain(np.array(sums), "ascending")


def test_trees_add_as_written_out() -> None:
    rng = np.random.default_rng(1)
    values = wild(rng, 3, 32)
    for name, combination in (
        ("sequential", "sequential"),
        ("ascending", "ascending-butterfly"),
        ("descending", "descending-butterfly"),
    ):
        want = np.array([plain(row, name) for row in values])
        np.testing.assert_array_equal(Tree(name, (Groups(None, combination),)).total(values), want)
    long = wild(rng, 2, 5000)
    want = np.array([row_of_mlx(row) for row in long])
    np.testing.assert_array_equal(Tree("row", mlx_row(5000, "ascending-butterfly")).total(long), want)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BFLOAT16], ids=str)
def test_half_types_round_at_each_addition(dtype: np.dtype) -> None:
    values = wild(np.random.default_rng(2), 4, 40).astype(dtype)
    want = []
    for row in values:
        total = Fraction(0)
        for value in row:
            total = Fraction(float(np.array(float(total + Fraction(float(value)))).astype(dtype)))
        want.append(float(total))
    np.testing.assert_array_equal(Tree("", (Lanes(1),)).total(values).astype(np.float64), want)


def test_lanes_begin_at_zero_and_a_short_lane_adds_nothing() -> None:
    values = np.full((1, 5), -0.0, np.float32)
    total = Tree("", (Lanes(4), Groups(None, "sequential"))).total(values)
    assert total.view(np.uint32).tolist() == [0]
    assert Tree("", (Lanes(4), Groups(None, "reverse"))).total(np.ones((1, 5), np.float32)).tolist() == [5.0]


def test_a_fused_multiply_add_rounds_once() -> None:
    rng = np.random.default_rng(3)
    a, b, c = (wild(rng, 20_000) for _ in range(3))
    c[::2] = -(a * b)[::2]
    # In float64 the exact sum, 1 + 2^-23 + 2^-24 - 2^-60, would round to a tie of float32.
    a[0], b[0], c[0] = np.float32(2**-24 * (1 + 2**-18)), np.float32(1 - 2**-18), np.float32(1 + 2**-23)
    got = fma(a, b, c)
    for i in range(0, 20_000, 7):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        error = abs(Fraction(float(got[i])) - exact)
        for neighbour in (np.nextafter(got[i], np.float32(np.inf)), np.nextafter(got[i], np.float32(-np.inf))):
            assert error <= abs(Fraction(float(neighbour)) - exact), (a[i], b[i], c[i], got[i])
    assert got[0] == np.float32(1 + 2**-23)


def test_known_trees_are_told_apart() -> None:
    """Every tree of many sizes: the one that was used is among the answers, and others differ from it hardly ever."""
    rng = np.random.default_rng(4)
    count = 0
    for n in [*range(1, 70), 96, 127, 128, 255, 257, 300, 512]:
        for tree in known(n):
            values, fresh = wild(rng, ROWS, n), wild(rng, ROWS, n)
            found = diagnose(tree.total(values), values)
            assert tree in [candidate.tree for candidate in found.matches], (n, tree)
            for candidate in found.matches:
                alike = same_bits(candidate.tree.total(fresh), tree.total(fresh))
                assert alike.mean() > 0.9, (n, tree, candidate)
            count += 1
    assert count > 3000


@pytest.mark.parametrize("n", [1, 2, 64, 65, 1000, 1025, 4096, 5000, 10_000])
def test_every_known_tree_is_found_again(n: int) -> None:
    values = wild(np.random.default_rng(n), PROBED + 1, n)
    for tree in known(n):
        found = diagnose(tree.total(values), values)
        assert tree in [candidate.tree for candidate in found.matches], tree


def test_products_fused_or_not() -> None:
    rng = np.random.default_rng(5)
    a, b = wild(rng, ROWS, 100), wild(rng, ROWS, 100)
    for tree in known(100, fused=True):
        found = diagnose(tree.total(a, b), a, b)
        assert tree in [candidate.tree for candidate in found.matches]
        if isinstance(tree.steps[0], Lanes) and tree.steps[0].count < 64:
            assert all(candidate.tree.fused == tree.fused for candidate in found.matches), tree


def test_half_sums_and_float32_sums_of_halves() -> None:
    values = wild(np.random.default_rng(6), 8, 90).astype(np.float16)
    narrow = diagnose(Tree("", (Lanes(1),)).total(values), values)
    wide = diagnose(Tree("", (Lanes(1),)).total(values.astype(np.float32)).astype(np.float16), values)
    assert next(c.name for c in narrow.matches) == "sequential"
    assert "sequential, in float32" in [c.name for c in wide.matches]


def test_no_known_order_is_said_so() -> None:
    values = wild(np.random.default_rng(7), 4, 200)
    found = diagnose(np.nextafter(Tree("", (Lanes(1),)).total(values), np.float32(np.inf)), values)
    assert not found.matches
    with pytest.raises(ValueError, match=r"Expected results \[m\]"):
        diagnose(values[:, 0], values[:3])
    with pytest.raises(ValueError, match="float64"):
        diagnose(values[:, 0].astype(np.float64), values)


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = wild(np.random.default_rng(8), 6, 6000)
    path = tmp_path / "sums.safetensors"
    for steps, name in (
        (mlx_column_two_pass(6000, "ascending-butterfly"), "MLX two-pass column reduction, ascending-butterfly"),
        (mlx_all(6000, "sequential"), "MLX reduction of all, sequential"),
    ):
        save(path, {"result": Tree("", steps).total(values), "values": values}, {})
        assert main(["order", str(path)]) == 0
        assert name in capsys.readouterr().out
    assert main(["order", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["results"] == 6
    assert told["numbers"] == 6000
    assert told["matches"][0]["steps"].startswith("rows of 47")
    save(path, {"result": values[:, 0], "values": values}, {})
    assert main(["order", str(path)]) == 1
    assert "no known order gives these bits; the nearest" in capsys.readouterr().out


def test_the_verb_refuses_what_is_no_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.safetensors"
    assert main(["order", str(path)]) == 2
    path.write_bytes(b"nothing")
    assert main(["order", str(path)]) == 2
    save(path, {"result": np.zeros(2, np.float32)}, {})
    assert main(["order", str(path)]) == 2
    assert "'result' and 'values'" in capsys.readouterr().err


def test_the_verb_reads_what_mlx_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = mx.arange(12, dtype=mx.float32).reshape(2, 6)
    mx.save_safetensors(str(tmp_path / "mlx.safetensors"), {"values": values, "result": values.sum(axis=1)})
    assert main(["order", str(tmp_path / "mlx.safetensors")]) == 0
    assert "sequential" in capsys.readouterr().out


OWN_FOLD = """
import mlx.core as mx

def trellis_fold(partial, output_dtype):
    total = mx.zeros(partial.shape[2:])
    for row in range(127, -1, -1):
        total = total + partial[0, row]
    return total[None].astype(getattr(mx, output_dtype))
"""


def test_the_verb_on_a_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """MLX's column reduction of the built-in kernel, and an implementation that adds from the last row up."""
    (tmp_path / "own_fold.py").write_text(OWN_FOLD)
    monkeypatch.syspath_prepend(tmp_path)
    case = "trellis_fold/float32/sum/magnitudes?cols=256&seed=0"
    assert main(["order", case]) == 0
    assert "MLX looped column reduction, ascending-butterfly" in capsys.readouterr().out
    assert main(["order", case, "--implementation", "own_fold", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [answer["matches"][0]["name"] for answer in told.values()] == ["reverse"] * len(told)
    assert main(["order", "normalized_argmax/bfloat16/ties/tiles?vocab=1025&seed=0"]) == 2
    assert "an operation that is a sum, trellis_fold" in capsys.readouterr().err


def test_an_order_is_named_once() -> None:
    for tree in known(1, False, False):
        names = tree.name.split(" = ")
        assert len(names) == len(set(names))
