"""What judges, text by text: the faults that are planted in it and the self-tests that have to notice them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COMPARISON, JUDGE, CODEC, GATE, EXECUTOR = "comparison", "judge", "codec", "gate", "executor"
AREAS = (COMPARISON, JUDGE, CODEC, GATE, EXECUTOR)
RUNTIME = "impl/executors/runtime"

_COMPARE = ("test_compare_edges.py", "test_compare.py")
_JUDGE = ("test_judge.py", "test_oracles.py", "test_order.py", "test_planted.py")
_CODEC = ("test_codec_limits.py", "test_codec.py", "test_encoding.py")
_GATE = (
    "test_gate.py",
    "test_gate_policy.py",
    "test_gate_damage.py",
    "test_gate_statement.py",
    "test_gate_property.py",
)
_NUMBERS = ("test_executor_edges.py", "test_executor_numbers.py")
_LANES = ("test_executor_edges.py", "test_executor_threads.py", "test_lanes.py", "test_fidelity.py")


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
    Judging("conformance/gating/decision.py", GATE, _GATE),
    Judging("conformance/gating/presence.py", GATE, _GATE),
    Judging("conformance/gating/waiving.py", GATE, _GATE),
    Judging("conformance/gating/coverage.py", GATE, _GATE),
    Judging("conformance/gating/mutants.py", GATE, ("test_gate_mutants.py",)),
    Judging(f"{RUNTIME}/half.cpp", EXECUTOR, _NUMBERS, ("static u16 fma(u16 a, u16 b, u16 c) {",)),
    Judging(
        f"{RUNTIME}/bfloat.h",
        EXECUTOR,
        _NUMBERS,
        ("METAL_FUNC constexpr float round_to_odd(I value) {", "METAL_FUNC constexpr ushort bfloat_bits(float f) {"),
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
            "struct ShuffleAndFill {",
            "METAL_FUNC void join(T& v, bool& some, T other, bool other_some) {",
            "struct Reduce {",
            "struct Scan {",
            "struct Vote {",
        ),
    ),
    Judging(
        f"{RUNTIME}/barrier.cpp",
        EXECUTOR,
        ("test_executor_threads.py",),
        ("void open_barrier(Engine* e) {", "static void arrive(Engine* e) {", "void assay_barrier(int site) {"),
    ),
    Judging(
        f"{RUNTIME}/shadow.cpp",
        EXECUTOR,
        ("test_checker.py",),
        (
            "static u32 region_of(const Check* c, u64 at) {",
            "void* assay_access(void* pointer, u32 size, u32 how_align, u32 site) {",
        ),
    ),
)


def text_of(name: str) -> Judging:
    """The entry of a text. KeyError: none."""
    return {text.name: text for text in TEXTS}[name]
