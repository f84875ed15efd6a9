"""What judges, text by text: the faults that are planted in it and the self-tests that have to notice them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COMPARISON, JUDGE, CODEC, GATE, EXECUTOR = "comparison", "judge", "codec", "gate", "executor"
AREAS = (COMPARISON, JUDGE, CODEC, GATE, EXECUTOR)
RUNTIME = "impl/executors/runtime"

_COMPARE = ("test_compare_edges.py", "test_compare.py")
_JUDGE = (
    *("test_judge_edges.py", "test_judge_calls.py", "test_judge_rounds.py", "test_judge_panel.py"),
    *("test_judge_bounds.py", "test_judge_conditions.py", "test_judge.py"),
)
_CODEC = ("test_codec_limits.py", "test_codec.py", "test_encoding.py")
_DECISION = (
    *("test_gate_rules.py", "test_gate_legs.py", "test_gate_structs.py", "test_gate_rows.py"),
    *("test_gate_twice.py", "test_gate.py", "test_gate_statement.py"),
)
# Every kernel is compiled anew for each fault of a header: their tests are few, and each kernel asks for all it can.
_NUMBERS = ("test_executor_rounding.py", "test_executor_edges.py")
_LANES = (
    "test_executor_lanes.py",
    "test_executor_lanes_checked.py",
    "test_executor_lanes_alone.py",
    "test_executor_lanes_apart.py",
)


@dataclass(frozen=True)
class Judging:
    """One text. `tests` are files of ci/selftest.

    `parts` are lines of the text, each the first of a function or a class, that hold its faults; none: the whole text.
    """

    name: str
    area: str
    tests: Sequence[str]
    parts: Sequence[str] = ()

    @property
    def stem(self) -> str:
        """Its file's name, by which it may be asked for alone."""
        return self.name.rpartition("/")[2]

    @property
    def compiled(self) -> bool:
        """Whether kernels are compiled anew with each of its faults."""
        return not self.name.endswith(".py")


TEXTS = (
    Judging("conformance/judging/ulp.py", COMPARISON, _COMPARE),
    Judging("conformance/judging/compare.py", COMPARISON, _COMPARE),
    Judging("conformance/judging/relaxation.py", COMPARISON, _COMPARE),
    Judging("conformance/judging/finding.py", JUDGE, _JUDGE),
    Judging("conformance/judging/judge.py", JUDGE, _JUDGE),
    Judging("conformance/judging/panel.py", JUDGE, _JUDGE),
    Judging("conformance/judging/power.py", JUDGE, _JUDGE),
    Judging("fixtures/codec.py", CODEC, _CODEC),
    Judging("fixtures/encoding.py", CODEC, ("test_encoding.py", "test_codec_limits.py", "test_codec.py")),
    Judging("conformance/gating/decision.py", GATE, _DECISION),
    Judging(
        "conformance/gating/presence.py", GATE, ("test_gate_presence.py", "test_gate_rules.py", "test_gate_edges.py")
    ),
    Judging(
        "conformance/gating/waiving.py", GATE, ("test_gate_waiving.py", "test_gate_edges.py", "test_gate_structs.py")
    ),
    Judging("conformance/gating/coverage.py", GATE, ("test_gate_waiving.py",)),
    Judging("conformance/gating/mutants.py", GATE, ("test_gate_mutants.py", "test_gate_score.py")),
    Judging(
        f"{RUNTIME}/half.cpp",
        EXECUTOR,
        ("test_executor_edges.py", "test_executor_numbers.py"),
        ("static u16 fma(u16 a, u16 b, u16 c) {",),
    ),
    Judging(
        f"{RUNTIME}/bfloat.h",
        EXECUTOR,
        _NUMBERS,
        ("METAL_FUNC constexpr float round_to_odd(I value) {", "METAL_FUNC constexpr ushort bfloat_bits(float f) {"),
    ),
    Judging(
        f"{RUNTIME}/builtins.h",
        EXECUTOR,
        _NUMBERS,
        (
            "METAL_FUNC bool is_nan(float x) { return x != x; }",
            "METAL_FUNC float larger(float x, float y) { return is_nan(x) ? y : is_nan(y) ? x : x > y ? x : y; }",
            "METAL_FUNC float smaller(float x, float y) { return is_nan(x) ? y : is_nan(y) ? x : x < y ? x : y; }",
        ),
    ),
    Judging(
        f"{RUNTIME}/letters.h",
        EXECUTOR,
        _LANES,
        ("METAL_FUNC constexpr uint source(Route route, uint lane, uint argument) {",),
    ),
    Judging(
        f"{RUNTIME}/lanes.h",
        EXECUTOR,
        _LANES,
        (
            "struct Shuffle {",
            "METAL_FUNC constexpr uint window(uint modulo, uint most) {",
            "METAL_FUNC constexpr uint filled(uint delta, uint modulo, uint most) "
            "{ return delta | window(modulo, most) << 16; }",
            "struct ShuffleAndFill {",
            "METAL_FUNC void join(T& v, bool& some, T other, bool other_some) {",
            "METAL_FUNC uint distance(uint order, uint step, uint width) "
            "{ return order == kDescending ? width >> (step + 1u) : 1u << step; }",
            "struct Reduce {",
            "METAL_FUNC void join_down(T& v, bool& some, const T* each, const bool* active, uint last) {",
            "struct Scan {",
            "struct Vote {",
            "struct First {",
            "struct QuadFirst {",
        ),
    ),
    Judging(
        f"{RUNTIME}/barrier.cpp",
        EXECUTOR,
        ("test_executor_barriers.py", "test_executor_threads.py", "test_checker.py"),
        ("void open_barrier(Engine* e) {", "static void arrive(Engine* e) {", "void assay_barrier(int site) {"),
    ),
    Judging(
        f"{RUNTIME}/shadow.cpp",
        EXECUTOR,
        (
            "test_checker_addresses.py",
            "test_checker_spans.py",
            "test_checker_owners.py",
            "test_checker_far.py",
            "test_checker_halves.py",
            "test_checker.py",
        ),
        (
            "static u32 region_of(const Check* c, u64 at) {",
            "void* assay_access(void* pointer, u32 size, u32 how_align, u32 site) {",
        ),
    ),
)


def text_of(name: str) -> Judging:
    """The entry of a text. KeyError: none."""
    return {text.name: text for text in TEXTS}[name]
