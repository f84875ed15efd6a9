"""Planted implementations: each wrong in one way, each caught by the kinds of case that hunt its fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from fault_patterns import PATTERNS

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.judging.finding import CONFORMING
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import kinds

FOLDER = Path(__file__).parent
LIMIT = 30.0
SHORT_LIMIT = 1.0
IMPORT_LIMIT = 5.0

DIFFERS, ERROR, CRASHED = Verdict.DIFFERS, Verdict.ERROR, Verdict.CRASHED
TIMED_OUT, UNSUPPORTED = Verdict.TIMED_OUT, Verdict.UNSUPPORTED
ARGMAX, GIVEN, MASK = "normalized_argmax", "argmax_given", "apply_token_bitmask"
CAPPED, FUSED = "logit_softcap", "compiled_logit_softcap"


class Fault(NamedTuple):
    """Which operation a planted implementation gets wrong, the verdict that must come, and the kinds that see it."""

    operation: str
    verdict: Verdict
    kinds: tuple[str, ...]
    words: str = ""


PLAIN = ("shape/rows", "ties/tile")

FAULTS: dict[str, tuple[Fault, ...]] = {
    "zeros": (
        Fault(ARGMAX, DIFFERS, ("nan/one", "inf/all-negative", "ties/all-equal", "mask/dead-end")),
        Fault(GIVEN, DIFFERS, ("nan/one", "inf/all-negative", "ties/all-equal", "lse/nan")),
        Fault(MASK, DIFFERS, ("mask/none-allowed", "logits/all-nan", "logits/signed-zero")),
        Fault(CAPPED, DIFFERS, ("cap/zero", "cap/underflowing", "values/signed-zero")),
        Fault(FUSED, DIFFERS, ("cap/zero", "cap/underflowing", "values/signed-zero")),
    ),
    "copy_of_input": (
        Fault(MASK, DIFFERS, ("mask/all-allowed", "logits/all-nan", "logits/infinity")),
        Fault(CAPPED, DIFFERS, ("cap/huge", "values/nan", "values/signed-zero", "sweep/zero")),
        Fault(FUSED, DIFFERS, ("cap/huge", "values/nan", "values/signed-zero", "sweep/zero")),
    ),
    "unwritten_output": (Fault(ARGMAX, DIFFERS, ("shape/rows", "ties/all-equal")),),
    "barrier_missing": (Fault(ARGMAX, DIFFERS, PLAIN),),
    "kernel_reads_past_end": (Fault(ARGMAX, ERROR, ("shape/rows",), "reads 'ids' at element 1, and it has 1"),),
    "kernel_writes_past_end": (Fault(ARGMAX, ERROR, ("shape/rows",), "writes 'out' at element 1, and it has 1"),),
    "kernel_writes_before_start": (Fault(ARGMAX, ERROR, ("shape/rows",), "writes 'out' before its first element"),),
    "kernel_writes_input": (Fault(ARGMAX, ERROR, ("shape/rows",), "writes into its input 'ids'"),),
    "kernel_writes_wildly": (Fault(ARGMAX, ERROR, ("shape/rows",), "writes address 0x8, which belongs to none"),),
    "kernel_overruns_threadgroup": (Fault(ARGMAX, ERROR, ("shape/rows",), "threadgroup memory beyond its own"),),
    "kernel_takes_large_array": (Fault(ARGMAX, ERROR, ("shape/rows",), "more than 240 KiB of private memory"),),
    "kernel_recurses": (Fault(ARGMAX, ERROR, ("shape/rows",), "more than 240 KiB of private memory"),),
    "kernel_hangs": (Fault(ARGMAX, TIMED_OUT, ("shape/rows",), "no answer within the limit"),),
    "kernel_stores_forever": (Fault(ARGMAX, TIMED_OUT, ("shape/rows",), "no answer within the limit"),),
    "rows_beyond_64": (Fault(ARGMAX, DIFFERS, ("shape/many-rows",)),),
    "unwritten_memory": (Fault(ARGMAX, DIFFERS, PLAIN),),
    "stale_output": (Fault(CAPPED, DIFFERS, ("cap/plain", "reuse/same-input", "values/signed-zero")),),
    "cached_by_shape": (Fault(CAPPED, DIFFERS, ("cap/plain", "view/named", "values/uniform-bits")),),
    "cached_by_id": (Fault(ARGMAX, DIFFERS, ("shape/rows", "view/transposed", "view/reversed-columns")),),
    "cached_by_pointer": (Fault(MASK, DIFFERS, ("reuse/restrictive-then-open", "bits/container")),),
    "cached_first_call": (Fault(ARGMAX, DIFFERS, PLAIN),),
    "cached_by_sum": (Fault(ARGMAX, DIFFERS, ("extreme/lowest", "inf/all-but-one")),),
    "changes_logits": (Fault(ARGMAX, ERROR, PLAIN, "changed its input logits"),),
    "changes_in_place": (Fault(ARGMAX, ERROR, (*PLAIN, "view/transposed"), "changed its input logits"),),
    "changes_unused_element": (Fault(ARGMAX, ERROR, ("view/every-second-column",), "changed its input logits"),),
    "changes_mask": (Fault(MASK, ERROR, ("mask/random", "bits/container"), "changed its input bits"),),
    "reads_mask_late": (Fault(MASK, DIFFERS, ("mask/random", "bits/container"), "this was the second call"),),
    "float32_scores": (
        Fault(ARGMAX, DIFFERS, ("ties/rounding", "ties/public-vectors")),
        Fault(GIVEN, DIFFERS, ("ties/rounding", "lse/coarse")),
    ),
    "raw_argmax": (
        Fault(ARGMAX, DIFFERS, ("ties/rounding", "ties/public-vectors"), "tie lost"),
        Fault(ARGMAX, DIFFERS, ("nan/one", "mixture/orders"), "NaN rule"),
        Fault(GIVEN, DIFFERS, ("ties/rounding", "lse/coarse", "lse/nan")),
    ),
    "last_id_on_ties": (
        Fault(ARGMAX, DIFFERS, ("ties/tile", "ties/tiles", "ties/boundary", "ties/all-equal", "ties/three-way")),
        Fault(GIVEN, DIFFERS, ("ties/levels", "ties/higher-thread")),
    ),
    "nan_skipped": (
        Fault(ARGMAX, DIFFERS, ("inf/one", "inf/several", "mixture/orders")),
        Fault(GIVEN, DIFFERS, ("nan/finite-lse", "lse/infinite")),
    ),
    "last_nan_wins": (Fault(GIVEN, DIFFERS, ("nan/all", "inf/several", "lse/nan")),),
    "signed_zero_ordered": (Fault(GIVEN, DIFFERS, ("signed-zero/scores",), "tie lost"),),
    "denormals_flushed": (Fault(GIVEN, DIFFERS, ("denormal/scores",)),),
    "truncated_scores": (Fault(GIVEN, DIFFERS, ("lse/coarse", "lse/edges")),),
    "maximum_as_normaliser": (Fault(ARGMAX, DIFFERS, ("ties/rounding", "ties/public-vectors")),),
    "own_normaliser": (Fault(GIVEN, DIFFERS, ("lse/finite", "lse/coarse")),),
    "tile_alone": (Fault(ARGMAX, DIFFERS, ("shape/vocabulary", "ties/public-vectors")),),
    "later_tile_wins": (Fault(ARGMAX, DIFFERS, ("ties/tiles", "ties/higher-thread")),),
    "first_row_for_all": (Fault(ARGMAX, DIFFERS, ("shape/rows", "view/contiguous")),),
    "first_normaliser_for_all": (Fault(GIVEN, DIFFERS, ("lse/other-row", "lse-view/offset-rows")),),
    "strides_ignored": (
        Fault(ARGMAX, DIFFERS, ("view/every-second-column", "view/every-second-row", "view/transposed")),
        Fault(ARGMAX, DIFFERS, ("view/middle-columns", "view/padded-columns", "view/transposed-slice")),
    ),
    "dead_end_out_of_range": (Fault(GIVEN, DIFFERS, ("lse/infinite", "lse/overflow"), "id out of range"),),
    "ids_of_sixteen_bits": (Fault(ARGMAX, DIFFERS, ("large/winner",)),),
    "short_mask_passes": (Fault(MASK, DIFFERS, ("words/short", "reuse/changing-length"), "is missing"),),
    "surplus_words_break": (Fault(MASK, ERROR, ("words/long",), "too many words"),),
    "tail_unwritten": (Fault(MASK, DIFFERS, ("shape/odd-vocabulary", "vocabulary/padded")),),
    "mask_by_multiplication": (Fault(MASK, DIFFERS, ("logits/additive", "logits/infinity", "logits/signed-zero")),),
    "mask_by_overwriting": (
        Fault(MASK, DIFFERS, ("logits/additive", "logits/infinity", "logits/signed-zero", "logits/nan-payload")),
    ),
    "lowest_for_infinity": (Fault(MASK, DIFFERS, ("logits/rejection-written", "logits/extreme")),),
    "sign_bit_lost": (Fault(MASK, DIFFERS, ("word/sign-bit", "bit/only-allowed"), "bit 31"),),
    "sign_bit_smeared": (Fault(MASK, DIFFERS, ("word/sign-bit", "bit/only-allowed")),),
    "big_endian_bits": (Fault(MASK, DIFFERS, ("bit/only-allowed", "mask/pattern")),),
    "big_endian_bytes": (Fault(MASK, DIFFERS, ("bit/only-rejected", "word/every-byte-value")),),
    "mask_by_row": (Fault(MASK, DIFFERS, ("shape/batch", "reuse/same-words")),),
    "mask_strides_ignored": (Fault(MASK, DIFFERS, ("bits/every-second-word",)),),
    "mask_of_other_dtypes": (Fault(MASK, ERROR, ("error/bits-dtype",), "expected TypeError"),),
    "softcap_twice": (
        Fault(CAPPED, DIFFERS, ("cap/plain", "values/on-scale")),
        Fault(FUSED, DIFFERS, ("cap/plain", "values/on-scale")),
    ),
    "truncated_softcap": (Fault(CAPPED, DIFFERS, ("cap/plain", "values/on-scale")),),
    "softcap_rounded_once": (Fault(CAPPED, DIFFERS, ("values/rounded-each-step", "cap/half-overflowing")),),
    "tanh_by_exponentials": (Fault(CAPPED, DIFFERS, ("values/saturated", "sweep/overflow", "values/infinity")),),
    "tanh_clamped": (Fault(CAPPED, DIFFERS, ("values/nan", "cap/zero")),),
    "reciprocal_of_cap": (Fault(CAPPED, DIFFERS, ("cap/minute", "cap/inexact", "values/on-scale")),),
    "first_cap_for_all": (Fault(FUSED, DIFFERS, ("reuse/alternating-caps", "reuse/many-caps", "cap/neighbours")),),
    "integer_cap": (Fault(CAPPED, DIFFERS, ("cap/inexact",)),),
    "cap_of_float32": (Fault(CAPPED, ERROR, ("cap/plain",), "expected bfloat16"),),
    "cap_array_accepted": (Fault(CAPPED, ERROR, ("error/cap-array",), "to be raised"),),
    "sign_of_zero_lost": (Fault(CAPPED, DIFFERS, ("values/signed-zero",)),),
    "neighbour_in_last_place": (Fault(CAPPED, DIFFERS, ("exhaustive/every-encoding",), "1 ULP"),),
    "wrong_dtype": (Fault(ARGMAX, ERROR, PLAIN, "got int32"),),
    "wrong_shape": (Fault(ARGMAX, ERROR, PLAIN, "expected uint32"),),
    "wrong_rank_broadcast": (Fault(ARGMAX, ERROR, PLAIN, "got uint32 scalar"),),
    "far_too_large": (Fault(ARGMAX, ERROR, PLAIN, "got uint32 268435456"),),
    "tuple_returned": (Fault(ARGMAX, ERROR, PLAIN, "got tuple"),),
    "nothing_returned": (Fault(ARGMAX, ERROR, PLAIN, "got NoneType"),),
    "numpy_returned": (Fault(ARGMAX, ERROR, PLAIN, "got ndarray"),),
    "number_returned": (Fault(ARGMAX, ERROR, PLAIN, "got list"),),
    "equal_to_everything": (Fault(ARGMAX, ERROR, PLAIN, "got Everything"),),
    "subclass_returned": (Fault(ARGMAX, ERROR, PLAIN, "got Everything"),),
    "class_disguised": (Fault(ARGMAX, ERROR, PLAIN, "got array"),),
    "raises": (Fault(ARGMAX, ERROR, PLAIN, "raised ZeroDivisionError: division of nothing by nothing"),),
    "raises_wrong_type": (Fault(ARGMAX, ERROR, ("error/empty", "error/scalar"), "raised KeyError"),),
    "raises_disguised": (Fault(ARGMAX, ERROR, ("error/empty", "error/scalar"), "not the built-in one"),),
    "raises_at_length": (Fault(ARGMAX, ERROR, PLAIN, "�[2J�]0;conforms�all is well"),),
    "raises_unprintable": (Fault(ARGMAX, ERROR, PLAIN, "raised Unprintable"),),
    "swallows_bad_input": (Fault(ARGMAX, ERROR, ("error/empty", "error/scalar"), "expected ValueError"),),
    "not_implemented": (Fault(ARGMAX, UNSUPPORTED, PLAIN, "no kernel for this dtype"),),
    "exits_by_exception": (Fault(ARGMAX, ERROR, PLAIN, "raised SystemExit"),),
    "interrupts": (Fault(ARGMAX, ERROR, PLAIN, "raised KeyboardInterrupt"),),
    "recurses": (Fault(ARGMAX, ERROR, ("shape/rows",), "raised RecursionError"),),
    "takes_all_memory": (Fault(ARGMAX, ERROR, ("shape/rows",), "MemoryError"),),
    "exits_at_once": (
        Fault(ARGMAX, CRASHED, ("shape/rows",), "exit code 0; it printed last:\n  | leaving in good order"),
    ),
    "aborts": (Fault(ARGMAX, CRASHED, ("shape/rows",), "killed by SIGABRT"),),
    "segfaults": (Fault(ARGMAX, CRASHED, ("shape/rows",), "killed by SIGSEGV"),),
    "kills_itself": (Fault(ARGMAX, CRASHED, ("shape/rows",), "killed by SIGKILL"),),
    "crashes_on_second_round": (Fault(ARGMAX, CRASHED, ("shape/rows",), "killed by SIGABRT"),),
    "crashes_behind_fork": (Fault(ARGMAX, CRASHED, ("shape/rows",), "killed by SIGABRT"),),
    "hangs": (Fault(ARGMAX, TIMED_OUT, ("shape/rows",), "no answer within the limit"),),
    "hangs_holding_lock": (Fault(ARGMAX, TIMED_OUT, ("shape/rows",), "no answer within the limit"),),
    "hangs_ignoring_signals": (Fault(ARGMAX, TIMED_OUT, ("shape/rows",), "no answer within the limit"),),
    "floods": (Fault(ARGMAX, TIMED_OUT, ("shape/rows",), "all is well"),),
    "answers_late": (Fault(ARGMAX, DIFFERS, ("shape/rows",)),),
    "right_once": (Fault(ARGMAX, DIFFERS, ("shape/rows",), "this was the second call"),),
    "nan_payload_drifts": (Fault(CAPPED, DIFFERS, ("values/nan",), "called again with the same input"),),
    "forges_stdout": (Fault(ARGMAX, DIFFERS, ("shape/rows",)),),
    "forges_channel": (Fault(ARGMAX, ERROR, ("shape/rows",), "the judge's channel"),),
    "garbles_channel": (Fault(ARGMAX, ERROR, ("shape/rows",), "the judge's channel"),),
    "forges_rank": (Fault(ARGMAX, ERROR, ("shape/rows",), "an output of 100 axes"),),
    "floods_channel": (Fault(ARGMAX, ERROR, ("shape/rows",), "a line of more than"),),
    "closes_channel": (Fault(ARGMAX, CRASHED, ("shape/rows",)),),
    "replaces_numpy": (Fault(ARGMAX, DIFFERS, PLAIN),),
    "replaces_mlx": (Fault(ARGMAX, DIFFERS, PLAIN),),
    "replaces_hashes": (Fault(ARGMAX, ERROR, PLAIN, "changed its input logits"),),
    "replaces_server": (Fault(ARGMAX, DIFFERS, PLAIN),),
    "reads_frames": (Fault(ARGMAX, DIFFERS, ("shape/rows",)),),
    "reads_arena": (Fault(ARGMAX, DIFFERS, ("shape/rows",)),),
}

STOCK = (ARGMAX, GIVEN, MASK, CAPPED, FUSED)
HARMLESS = ("stock", "leaves_threads", "leaves_processes", "forks", "floods_and_returns", "kernel_divides_by_zero")

EITHER = {
    # MLX sometimes hangs after an exception on its stream's thread.
    "raises_lazily": {ERROR, TIMED_OUT},
    # Who cuts the file to nothing loses its own answers, or is caught.
    "wipes_arena": {ERROR, CRASHED},
}

UNIMPORTABLE = {
    "bad.fails_on_import": "the shared library was built for another machine",
    "bad.exits_on_import": "exit code 3; it printed last:\ncannot go on",
    "bad.hangs_on_import": "it printed last:\nloading weights",
    "bad.empty_module": "to have a function of apply_token_bitmask, argmax_given, .* but it has none",
    "bad.empty_module:thing": "to have a function of apply_token_bitmask, argmax_given, .* but it has none",
    "bad.empty_module:absent": "has no attribute 'absent'",
    "bad.nowhere": "No module named 'bad.nowhere'",
}


@contextmanager
def planted(target: str, limit: float = LIMIT) -> Iterator[Implementation]:
    with pytest.MonkeyPatch.context() as patch, Implementation(target, "host", limit) as implementation:
        patch.syspath_prepend(FOLDER)
        yield implementation


def quick_cases(operation: str, kind: str) -> list[Case]:
    return list(kinds()[operation, kind].cases("quick"))


def caught(fault: Fault, kind: str, implementation: Implementation) -> str:
    """What is told of the first case that gets the verdict; no case of the kind gets another that does not conform."""
    seen: list[Record] = []
    for case in quick_cases(fault.operation, kind):
        record = judge(case, implementation)
        seen.append(record)
        assert record.verdict in (fault.verdict, *CONFORMING), record.message
        if record.verdict is fault.verdict and fault.words in record.message:
            return record.message
    told = "\n".join(f"{record.verdict} {record.id} {record.message}" for record in seen)
    raise AssertionError(f"Expected {fault.verdict} with {fault.words!r} from {kind} but got\n{told}")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str) -> None:
    verdicts = {fault.verdict for fault in FAULTS[name]}
    with planted(f"bad.{name}") as implementation:
        assert set(implementation.operations) >= {fault.operation for fault in FAULTS[name]}
        implementation.limit = SHORT_LIMIT if TIMED_OUT in verdicts else LIMIT
        told = [caught(fault, kind, implementation) for fault in FAULTS[name] for kind in fault.kinds]
    if name in PATTERNS:
        lines = [line for text in told for line in text.splitlines() if line.startswith("  pattern: ")]
        assert any(PATTERNS[name] in line for line in lines), told


@pytest.mark.parametrize("name", [name for name in FAULTS if name.startswith("kernel_")])
def test_the_case_after_a_kernels_fault_is_judged_as_ever(name: str) -> None:
    odd, even = quick_cases(ARGMAX, "shape/rows")[:2]
    with planted(f"bad.{name}") as implementation:
        assert implementation.operations
        verdict = FAULTS[name][0].verdict
        implementation.limit = SHORT_LIMIT if verdict is TIMED_OUT else LIMIT
        assert judge(odd, implementation).verdict is verdict
        implementation.limit = LIMIT
        record = judge(even, implementation)
        assert record.conforms, record.message


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_oddity_conforms(name: str) -> None:
    with planted(f"bad.{name}") as implementation:
        for kind in ("shape/rows", "ties/tile", "error/empty"):
            for case in quick_cases(ARGMAX, kind):
                record = judge(case, implementation)
                assert record.conforms, record.message


@pytest.mark.parametrize("name", EITHER)
def test_fault_without_a_certain_verdict_is_caught(name: str) -> None:
    with planted(f"bad.{name}") as implementation:
        assert implementation.operations
        implementation.limit = IMPORT_LIMIT
        records = [judge(case, implementation) for case in quick_cases(ARGMAX, "shape/rows")[:6]]
    assert {record.verdict for record in records} & EITHER[name]
    assert {record.verdict for record in records} <= {*EITHER[name], *CONFORMING}


@pytest.mark.parametrize("target", UNIMPORTABLE)
def test_target_that_cannot_be_judged_is_a_clear_error(target: str) -> None:
    with (
        planted(target, IMPORT_LIMIT) as implementation,
        pytest.raises(ImplementationError, match=f"(?s){UNIMPORTABLE[target]}"),
    ):
        assert implementation.operations


def test_every_planted_file_stands_in_one_table() -> None:
    unimportable = {target.removeprefix("bad.").partition(":")[0] for target in UNIMPORTABLE} - {"nowhere"}
    tables = [*FAULTS, *HARMLESS, *EITHER, *unimportable]
    # Those of the trellis stand in a table of their own (test_planted_trellis).
    files = [path.stem for path in (FOLDER / "bad").glob("*.py") if not path.stem.startswith("trellis_")]
    assert sorted(tables) == sorted(files)


def test_every_planted_file_names_its_fault_in_one_line() -> None:
    for path in (FOLDER / "bad").glob("*.py"):
        first = path.read_text().splitlines()[0]
        assert first.startswith('"""'), path.name
        assert first.endswith('."""'), path.name


@pytest.mark.parametrize("operation", sorted(contracts()))
def test_stock_operations_conform_everywhere(operation: str) -> None:
    """The control: what fails the planted implementations is not the cases."""
    with planted("bad.stock" if operation in STOCK else "bad.trellis_stock") as implementation:
        for (owner, name), kind in sorted(kinds().items()):
            if owner != operation or name.startswith(("large", "real", "sweep")):
                continue
            cases = list(kind.cases("quick"))
            for case in cases[:: max(1, -(-len(cases) // 2))]:
                record = judge(case, implementation)
                assert record.conforms, record.message
