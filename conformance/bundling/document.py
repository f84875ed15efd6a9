"""The words of a bundle, every size bounded: it may come from anywhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mlx_assay.conformance.bundling.launches import MOST_LAUNCHES, Buffer, Kernel, Launch
from mlx_assay.conformance.reporting.report import ContractRecord, Environment, Executor, Implementation, Suite
from mlx_assay.conformance.verdict import Verdict

SCHEMA: Literal["urn:mlx-assay:bundle:1"] = "urn:mlx-assay:bundle:1"
DOCUMENT = "bundle.json"
"""The tensor of bytes that holds the document; the others hold arrays."""

OF_REPORTS = ("ContractRecord", "Environment", "Executor", "Implementation", "OracleState", "Suite")

MOST_SUBCASES = 1000
MOST_KERNELS = 128
"""Of all calls together; fewer than one call may launch, so that a launch can name each."""

Word = Annotated[str, Meta(max_length=2000)]
Text = Annotated[str, Meta(max_length=20_000)]
Poison = Annotated[str, Meta(pattern="^0x[0-9a-f]{8}$")]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Array(_Strict, frozen=True, kw_only=True, tag_field="is", tag="array"):
    """An argument that is an array: its base, the steps to its view, and whose array it was (fixtures/tensor.py)."""

    name: Word
    base: Buffer
    steps: Annotated[list[tuple[str, tuple[Any, ...]]], Meta(max_length=16)] = []
    kind: Literal["mx", "numpy", "torch"] = "mx"


class Plain(_Strict, frozen=True, kw_only=True, tag_field="is", tag="plain"):
    """An argument that is a Python value, a float in hexadecimal."""

    name: Word
    type: Literal["float", "int", "bool", "str", "NoneType"]
    text: Word


class Raised(_Strict, frozen=True, kw_only=True):
    """What a call raised: its type, the built-in types among its bases, its message."""

    type: Word
    bases: Annotated[list[Word], Meta(max_length=100)]
    message: Text


class Round(_Strict, frozen=True, kw_only=True):
    """One call: what its outputs held before, the order of threads, what came, and the launches behind it.

    `got` is null where the call raised, or gave no array that an output could be; `other` says what it gave then.
    `omitted` says why launches are not told of.
    """

    poison: Poison
    schedule: Literal["in-order", "reverse"]
    raised: Raised | None = None
    got: Buffer | None = None
    other: Word = ""
    launches: Annotated[list[Launch], Meta(max_length=MOST_LAUNCHES)] = []
    omitted: Word = ""


class Want(_Strict, frozen=True, kw_only=True):
    """What an oracle expected, the rung that was needed against it, and the distance allowed where there is one."""

    oracle: Word
    version: Word
    conforms: Verdict
    output: Buffer
    ulps: int | Buffer | None = None


class BundledSubcase(_Strict, frozen=True, kw_only=True):
    """The arguments of one call, the exceptions of which it must raise one, what came in each round, what was expected.

    A second round is there where it gave other bits. `untold` says why nothing was expected.
    """

    label: Word
    raises: Annotated[list[Word], Meta(max_length=20)] = []
    arguments: Annotated[list[Array | Plain], Meta(max_length=64)]
    rounds: Annotated[list[Round], Meta(max_length=2)]
    wants: Annotated[list[Want], Meta(max_length=32)] = []
    untold: Word = ""


class Bundle(_Strict, frozen=True, kw_only=True):
    """A case with all that it takes to judge it again.

    `relaxations` are those of the contract that held on the executor. `left_out` are labels of subcases for which there
    was no room.
    """

    schema: Literal["urn:mlx-assay:bundle:1"]
    made: Word
    case: Word
    operation: Word
    dtype: Word
    why: Word
    verdict: Verdict
    message: Text
    suite: Suite
    contract: ContractRecord
    relaxations: Annotated[list[Word], Meta(max_length=20)]
    environment: Environment
    implementation: Implementation
    executor: Executor
    kernels: Annotated[list[Kernel], Meta(max_length=MOST_KERNELS)]
    subcases: Annotated[list[BundledSubcase], Meta(min_length=1, max_length=MOST_SUBCASES)]
    left_out: Annotated[list[Word], Meta(max_length=MOST_SUBCASES)] = []


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, as published in bundle.schema.json."""
    made = msgspec.json.schema(Bundle)
    for name in OF_REPORTS:
        # What they mean stands in the schema of reports, and is worded there alone.
        made["$defs"][name].pop("description", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **made}
