"""Objects made of Apple's kernels by LLVM, kept on disk under a key of all that decides them, loaded in place."""

import hashlib
import platform
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import msgspec

from mlx_assay.impl.executors import division
from mlx_assay.impl.executors.apple import lowering, runtime
from mlx_assay.impl.executors.apple.checking import Instructions
from mlx_assay.impl.executors.apple.container import MetallibError
from mlx_assay.impl.executors.apple.program import Constant, Program, disassemble
from mlx_assay.impl.executors.binding import Argument, ConstantValue
from mlx_assay.impl.executors.cache import kept
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.toolchain import machine

_linking = threading.Lock()


class Compiled(msgspec.Struct, frozen=True):
    """A kernel's object for this machine and what a launch has to know about it."""

    name: str
    arguments: tuple[Argument, ...]
    constants: dict[str, ConstantValue]
    threadgroup_bytes: int
    opaque: tuple[str, ...]
    ordered: tuple[str, ...]
    sites: tuple[str, ...]
    imports: tuple[str, ...]
    code: bytes
    instructions: tuple[str, ...] = ()
    """Of a checked build: the text of each place, counted from 1."""
    arrays: tuple[tuple[str, int], ...] = ()
    """Of a checked build: threadgroup variables and their bytes."""


@cache
def _sources() -> str:
    """What the lowering is made of."""
    digest = hashlib.sha256()
    for path in (Path(division.__file__), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _target_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    arm = machine() == "arm64"
    # The host executor's own baseline: FMA and F16C, native halves on arm64.
    cpu, features = ("generic", "+v8.2a,+fullfp16") if arm else ("x86-64-v3", "")
    target = llvm.Target.from_triple(llvm.get_process_triple())
    # Where a process has reserved much of its addresses, an object's parts lie far apart.
    return target.create_target_machine(cpu=cpu, features=features, opt=2, reloc="static", codemodel="large")


@cache
def _jit() -> Any:
    llvm.initialize_native_target()
    return llvm.create_lljit_compiler()


def _optimise(module: Any) -> None:
    """Inlines the `air.*` functions and folds the function constants; no more: Apple's compiler optimised already."""
    builder = llvm.create_pass_builder(_target_machine(), llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_opt_pass()
    passes.add_ipsccp_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


def emit(name: str, text: str) -> tuple[bytes, tuple[str, ...]]:
    """The object of a lowered module, and the symbols that it takes from outside."""
    target = _target_machine()
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(target.target_data)
        module.verify()
    except RuntimeError as error:
        raise MetallibError(f"kernel {name!r}: its module for this machine is not sound: {error}") from None
    _optimise(module)
    initialisers = [g for g in module.global_variables if g.name == "llvm.global_ctors" and "[0 x" not in str(g)]
    if initialisers:
        raise MetallibError(f"kernel {name!r}: its function constants could not be folded: {initialisers[0]}")
    imports = tuple(f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm."))
    return target.emit_object(module), imports


def _check_constants(program: Program, given: Mapping[str, ConstantValue]) -> dict[str, ConstantValue]:
    """A value for every constant by name; the caller may give its index (as text) instead."""
    by_name = {c.name: c for c in program.constants} | {str(c.index): c for c in program.constants}
    if unknown := [n for n in given if n not in by_name]:
        raise ValueError(
            f"kernel {program.name!r} has no function constant {unknown[0]!r}: expected {_listed(program.constants)}"
        )
    values = {by_name[n].name: v for n, v in given.items()}
    if missing := [c for c in program.constants if c.name not in values]:
        raise ValueError(f"kernel {program.name!r} needs a value for its function constants {_listed(missing)}")
    return values


def _listed(constants: tuple[Constant, ...] | list[Constant]) -> str:
    return ", ".join(f"{c.name} ({c.type}, index {c.index})" for c in constants) or "none"


def _compile(
    name: str, bitcode: bytes, constants: Mapping[str, ConstantValue], fidelity: Fidelity, checked: bool
) -> Compiled:
    program = disassemble(name, bitcode)
    values = _check_constants(program, constants)
    lowered = lowering.lower(program, values, runtime.offsets(), fidelity)
    instructions = Instructions(len(lowered.sites))
    code, imports = emit(name, instructions.rewritten(lowered.text) if checked else lowered.text)
    return Compiled(
        name=program.name,
        arguments=program.arguments,
        constants=values,
        threadgroup_bytes=lowered.threadgroup_bytes,
        opaque=lowered.opaque,
        ordered=lowered.ordered,
        sites=lowered.sites,
        imports=imports,
        code=code,
        instructions=tuple(instructions.texts) if checked else (),
        arrays=tuple((n, size) for n, (size, _) in program.threadgroup.items()) if checked else (),
    )


def compile_kernel(
    name: str, bitcode: bytes, constants: Mapping[str, ConstantValue], fidelity: Fidelity, checked: bool = False
) -> Compiled:
    """A kernel's object, from the cache or made now. `checked`: its accesses ask the checker.

    ValueError: a function constant is missing or unknown. MetallibError: the bitcode is not what it should be.
    UnknownFunction: it calls an `air.*` function that the runtime lacks.
    """
    key = hashlib.sha256(bitcode)
    versions = (llvmlite.__version__, str(llvm.llvm_version_info), runtime.digest(), _sources())
    given = sorted((str(k), type(v).__name__, v) for k, v in constants.items())
    for part in (
        name,
        *versions,
        sys.platform,
        platform.machine(),
        repr(given),
        *fidelity.compiled,
        *(["checked"] if checked else []),
    ):
        key.update(part.encode() + b"\0")

    def make(output: Path) -> None:
        made = _compile(name, bitcode, {str(k): v for k, v in constants.items()}, fidelity, checked)
        output.write_bytes(msgspec.msgpack.encode(made))

    return kept(key.hexdigest(), make, lambda path: msgspec.msgpack.decode(path.read_bytes(), type=Compiled))


class Code:
    """A loaded object: `thread` is the address of the function that runs one thread."""

    _loaded = 0

    def __init__(self, compiled: Compiled) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(compiled.code).export_symbol(lowering.ENTRY)
        # What LLVM calls by itself: memcpy and fmodf are the C library's, rounding to bfloat is not in every one.
        builder = builder.add_current_process()
        for symbol in (*compiled.imports, "__truncsfbf2"):
            if (address := runtime.address(symbol)) is None:
                raise MetallibError(f"kernel {compiled.name!r}: neither the runtime nor the C library has {symbol}")
            builder = builder.import_symbol(symbol, address)
        with _linking:
            Code._loaded += 1
            # The tracker keeps the object in memory for as long as it lives.
            try:
                self._tracker = builder.link(_jit(), f"air-{Code._loaded}")
            except RuntimeError as error:
                raise MetallibError(f"kernel {compiled.name!r}: its object cannot be loaded: {error}") from None
        self.thread: int = self._tracker[lowering.ENTRY]
