"""MLX's names of its stock kernels: which function of which header a name stands for, with which template arguments."""

import re
from dataclasses import dataclass
from functools import lru_cache

from mlx_assay.impl.executors.stock.rules import RULES

_TYPES = {
    **{"float32": "float", "float16": "half", "bfloat16": "bfloat16_t", "complex64": "complex64_t", "bool_": "bool"},
    **{f"{sign}int{size}": f"{sign}int{size}_t" for sign in ("", "u") for size in (8, 16, 32, 64)},
    **{"float": "float", "float16_t": "half", "bfloat16_t": "bfloat16_t"},
    **{"nomask": "nomask_t"},
}


@dataclass(frozen=True)
class Definition:
    """An instantiation: `headers` below mlx/backend/metal/kernels, besides utils.h."""

    headers: tuple[str, ...]
    function: str
    arguments: str

    def text(self, name: str) -> str:
        """Metal text with this instantiation under a host name."""
        lines = [f'#include "mlx/backend/metal/kernels/{header}"' for header in ("utils.h", *self.headers)]
        called = f"{self.function}<{self.arguments}>" if self.arguments else self.function
        kernel = f'template [[host_name("{name}")]] [[kernel]] decltype({called}) {called};'
        return "\n".join([*lines, *([kernel] if self.arguments else [])]) + "\n"


_COMPARISONS = frozenset(
    ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual", "NaNEqual", "LogicalAnd", "LogicalOr")
)
_TYPE_GROUPS = ("t", "u", "t1", "t2")
# What stands for true; anything else in such a group is false.
_TRUE = {"ta": "t", "tb": "t", "mn": "t", "k": "t", "small": "s", "right": "right", "inc": "in"}
# The name of sdpa_vector_2pass_1_gqa leaves its last argument out.
_HEADS_A_THREAD = {("8", "64"): "8", ("8", "128"): "4", ("12", "128"): "4", ("16", "128"): "2"}
_DELTA = {"seq_gated_delta": "gated_delta_seq", "seq_gated_delta_vjp": "gated_delta_vjp_seq"}


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _reduced(operation: str, type_: str) -> str:
    """The type in which MLX adds up small integers."""
    if operation in ("and", "or"):
        return "bool"
    if operation in ("sum", "prod") and type_ in ("bool", "int8_t", "int16_t", "uint8_t", "uint16_t"):
        return "uint32_t" if type_ == "uint16_t" else "int32_t"
    return type_


def _packed(function: str, tags: str, scaled: bool) -> dict[str, str]:
    """The function of a quantised product, and the numbers behind its name's tags as arguments."""
    values = re.findall(r"_[a-zA-Z]+_(\w+?)(?=_|$)", tags)
    base, _, order = function.rpartition("_")
    if base.endswith("rhs"):
        function = base
        values.append(_truth(order == "nt"))
    if scaled:
        values.append("true")
    return {"packed": function, "tags": "".join(f", {value}" for value in values)}


def _derived(found: dict[str, str]) -> dict[str, str]:
    """What a rule's braces may hold."""
    out = {name: _TYPES[value] if name in _TYPE_GROUPS else value for name, value in found.items()}
    operation, function = found.get("op", ""), found.get("f", "")
    out |= {name: _truth(found[name] == true) for name, true in _TRUE.items() if name in found}
    out["Op"] = operation[:1].upper() + operation[1:]
    out["out"] = _reduced(operation, out.get("t", ""))
    out["outcome"] = "bool" if operation in _COMPARISONS else out.get("t", "")
    out["reads"] = "2" if found.get("t") in ("int64", "uint64", "complex64") else "4"
    out["index"] = "int64_t" if found.get("large") else "int"
    out["rev"], out["arg"] = _truth(bool(found.get("rev"))), _truth(bool(found.get("arg")))
    out["c"] = "0" if found.get("c") == "l" else found.get("c", "")
    out["tk"] = found.get("tk") or "4"
    out["axbpy"] = "_axpby" if found.get("axbpy") else ""
    out["rhs"] = found.get("rhs", "").rstrip("_") and "_rhs"
    out["hpt"] = _HEADS_A_THREAD.get((found.get("g", ""), found.get("d", "")), "")
    out["delta"] = _DELTA.get(function, function)
    return out | _packed(function, found.get("tags", ""), bool(found.get("hgs")))


@lru_cache(maxsize=4096)
def define(name: str) -> Definition | None:
    """The instantiation that MLX's name of a kernel stands for; None: no header that MLX ships has one of that form."""
    for rule in RULES:
        if (match := re.fullmatch(rule.pattern, name)) is not None:
            values = _derived({k: v or "" for k, v in match.groupdict().items()})
            return Definition(rule.headers, rule.function.format(**values), rule.arguments.format(**values))
    return None
