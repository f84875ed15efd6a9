"""What each kind of finding means and how it is mended: the texts behind `[race]` and behind SARIF's rules."""

from __future__ import annotations

from typing import NamedTuple

from mlx_assay.impl.executors.checker.finding import SEVERITY, Kind, Severity


class Rule(NamedTuple):
    """One kind: its weight, what it is, and what mends it."""

    kind: str
    severity: Severity
    title: str
    help: str


COMPILE_ERROR = "compile-error"
"""A kernel that the host executor's compiler refuses: the one kind that is not the checker's own."""

_TEXTS = {
    Kind.RACE: (
        "Two simdgroups of a threadgroup access the same memory, at least one writes, and no barrier orders them",
        "Put threadgroup_barrier() between the two lines, with the flag of the memory that they share.",
    ),
    Kind.SIMDGROUP_RACE: (
        "Two lanes of a simdgroup access the same memory, at least one writes, and no barrier orders them",
        "Put simdgroup_barrier() between the two lines, with the flag of the memory that they share.",
    ),
    Kind.THREADGROUP_RACE: (
        "Two threadgroups access the same device memory, at least one writes, and nothing orders them",
        "Let each threadgroup write elements of its own, or use atomics (atomic_outputs=True).",
    ),
    Kind.SAME_VALUE_WRITE: (
        "Several threads write the same bits to the same memory without a barrier between",
        "Harmless on the hardware that is known. Let one thread write if it is not meant.",
    ),
    Kind.BARRIER_FLAGS: (
        "A barrier lies between two accesses, but its flags do not name the memory that they share",
        "Give the barrier the flag of that memory: mem_flags::mem_threadgroup or mem_flags::mem_device.",
    ),
    Kind.DIVERGENT_BARRIER: (
        "Threads of a threadgroup wait at different barriers, or some never come to the one where others wait",
        "Move the barrier out of the branch or loop, so that every thread reaches it equally often.",
    ),
    Kind.DIVERGENT_SIMD: (
        "Lanes are missing from a simdgroup operation that needs all of them: of matrices, or beside a barrier",
        "Move the operation out of the branch, so that every lane of the simdgroup takes part.",
    ),
    Kind.PARTIAL_SIMD: (
        "Lanes are missing from a reduction, a vote or a shuffle, which acts on those that take part",
        "Nothing, where the others are meant to be left out; else move the operation out of the branch. A lane that is "
        "read and takes no part is a finding of its own, inactive-lane.",
    ),
    Kind.EXIT_BEFORE_BARRIER: (
        "Threads return before a barrier that the others reach",
        "Metal counts them as arrived on the hardware that is known. Guard the work, not the barrier, to be sure.",
    ),
    Kind.OUT_OF_BOUNDS: (
        "An access lies outside of its array",
        "Compare the index with the array's size first: the last threadgroup and odd shapes are the usual cause.",
    ),
    Kind.WRITE_TO_INPUT: (
        "A kernel writes to one of its inputs",
        "Write to an output. MLX may share an input's memory with other arrays.",
    ),
    Kind.MISALIGNED: (
        "An access of a type at an address that is no multiple of its alignment",
        "Use packed types, or load the elements one by one.",
    ),
    Kind.UNINITIALISED: (
        "Memory is read that nothing has written",
        "Write it first. Metal clears neither threadgroup memory nor outputs; init_value= does for outputs.",
    ),
    Kind.INACTIVE_LANE: (
        "A simdgroup operation reads a lane that takes no part or does not exist, or shuffles by a window that Metal "
        "leaves open, and an output depends on it",
        "Let every lane take part, or choose the lane to read among those that do; a window has 2, 4, 8, 16 or 32.",
    ),
    Kind.SHIFT: (
        "A shift by a count that is negative, or not less than the width of the type",
        "Mask or compare the count first; what such a shift gives differs between machines.",
    ),
    Kind.THREADGROUP_MEMORY: (
        "A kernel declares more than 32 KiB of threadgroup memory",
        "Declare less: split the work over more threadgroups, or hold it in a narrower type.",
    ),
    Kind.THREADS: (
        "A threadgroup of more than 1,024 threads",
        "Ask for a smaller threadgroup and let each thread do more, or launch more threadgroups.",
    ),
    Kind.UNWRITTEN: (
        "Elements of an output that no thread writes",
        "Launch enough threads, let them loop over the rest, or give init_value=.",
    ),
    Kind.DEPENDS_ON_SCHEDULE: (
        "An output differs with the order in which threads run",
        "Look for a race among this kernel's other findings; without one, an atomic's order decides.",
    ),
    Kind.ATOMIC_ORDER: (
        "Elements that atomics alone write differ with the order in which threads run",
        "Nothing orders atomics, and sums of floats are rounded in their order. Add up within the threadgroup and "
        "write partial sums, or add integers, where every run has to give the same bits.",
    ),
    Kind.DEPENDS_ON_GARBAGE: (
        "An output differs with what memory held before the launch",
        "Write the memory before it is read, or give init_value=.",
    ),
    Kind.HANG: (
        "A kernel does not come to an end within the limit",
        "Look at the condition of the loop and at what other threads must write for it to end; a compare and exchange "
        "of floats never tells success over a NaN, one of their bits does. Raise --launch-limit if the kernel is only "
        "slow.",
    ),
    Kind.CRASH: (
        "A kernel ends the process that runs it",
        "Look for wild addresses, unbounded recursion and arrays of a thread's own that together do not fit into its "
        "stack, which here has 256 KiB; the launch that was under way is named.",
    ),
}

RULES = {kind.value: Rule(kind.value, SEVERITY[kind], *texts) for kind, texts in _TEXTS.items()} | {
    COMPILE_ERROR: Rule(
        COMPILE_ERROR,
        Severity.ERROR,
        "A kernel's text is refused by the compiler",
        "Mend it as the message says. A name that is said to be unsupported may still be Metal's: then it is this "
        "executor that lacks it.",
    )
}
"""Every kind by its name, in the order of the checker's enumeration."""
