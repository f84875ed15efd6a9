"""Function constants of Apple's compiled kernels, what is marked as opaque, and the cache of objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def constant_kernel(forge: Any) -> str:
    """out = in + amount, where buffer 0 is there only if `active`; otherwise amount alone."""
    body = """  %on = load i8, ptr addrspace(2) @_ZL6active
  %off = icmp eq i8 %on, 0
  br i1 %off, label %join, label %read
read:
  %p = getelementptr float, ptr addrspace(1) %0, i32 %id
  %l = load float, ptr addrspace(1) %p
  br label %join
join:
  %x = phi float [ 0.0, %START ], [ %l, %read ]
  %a = load float, ptr addrspace(2) @_ZL6amount
  %r = fadd float %x, %a
  %q = getelementptr float, ptr addrspace(1) %1, i32 %id
  store float %r, ptr addrspace(1) %q"""
    declared = """declare i8 @air.normalize_function_constant_predicate.i8(i8)
@__metal_implicit_fc_pred_0 = internal addrspace(2) global i8 0, align 1
@_Z6active.MTL_FC_INIT_3_b = HEAD i8 undef, section "air.fc_initializer", align 1
@_Z6amount.MTL_FC_INIT_4_f = HEAD float undef, section "air.fc_initializer", align 4
@_ZL6active = internal unnamed_addr addrspace(2) global i8 undef, align 1
@_ZL6amount = internal unnamed_addr addrspace(2) global float undef, align 4
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @init, ptr null }]
define internal void @init() section "air.static_init" {
  %1 = load i8, ptr addrspace(2) @_Z6active.MTL_FC_INIT_3_b, align 1
  store i8 %1, ptr addrspace(2) @_ZL6active, align 1
  %2 = load float, ptr addrspace(2) @_Z6amount.MTL_FC_INIT_4_f, align 4
  store float %2, ptr addrspace(2) @_ZL6amount, align 4
  %3 = tail call i8 @air.normalize_function_constant_predicate.i8(i8 %1)
  store i8 %3, ptr addrspace(2) @__metal_implicit_fc_pred_0, align 1
  ret void
}"""
    declared = declared.replace("HEAD", "internal unnamed_addr addrspace(2) externally_initialized constant")
    tail = """!air.function_constants = !{!50, !51}
!50 = !{ptr addrspace(2) @_Z6active.MTL_FC_INIT_3_b, !"bool", !"active", i32 3, i1 true}
!51 = !{ptr addrspace(2) @_Z6amount.MTL_FC_INIT_4_f, !"float", !"amount", i32 4, i1 true}
!52 = !{ptr addrspace(2) @__metal_implicit_fc_pred_0, !"bool", !"active"}"""
    text: str = forge.module("START:\n" + body, "f", "f", declared, tail=tail)
    return text.replace('!{i32 0, !"air.buffer"', '!{i32 0, !"air.function_constant", !52, !"air.buffer"')


def test_function_constants_decide(forge: Any) -> None:
    text, x, out = constant_kernel(forge), np.float32([1, 2]), np.zeros(2, np.float32)
    on = forge.kernel(text, constants={"active": True, "amount": 0.1})
    on([x, out], grid=2, threadgroup=2)
    assert out.tolist() == (x + np.float32(0.1)).tolist()
    off = forge.kernel(text, constants={"3": False, "4": 2.5})
    off({1: out}, grid=2, threadgroup=2)
    assert out.tolist() == [2.5, 2.5]
    with pytest.raises(ValueError, match="buffer 0 is missing"):
        on({1: out}, grid=2, threadgroup=2)


def test_a_function_constant_without_a_value_is_named(forge: Any) -> None:
    with pytest.raises(ValueError, match=r"needs a value for its function constants amount \(float, index 4\)"):
        forge.kernel(constant_kernel(forge), constants={"active": True})
    with pytest.raises(ValueError, match="has no function constant 'more'"):
        forge.kernel(constant_kernel(forge), constants={"active": True, "amount": 1, "more": 1})


def test_what_the_c_library_decides_is_marked(forge: Any) -> None:
    assert forge.kernel(forge.call("air.fast_exp.f32", "f", "f")).opaque == ["air.fast_exp.f32"]
    assert forge.kernel(forge.call("air.sqrt.f32", "f", "f")).opaque == []


def test_a_damaged_object_in_the_cache_is_made_anew(forge: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("MLX_ASSAY_CACHE", str(tmp_path / "cache"))
    text, x = forge.call("air.fabs.f32", "f", "f"), np.float32([-1, 2])
    assert forge.run(forge.kernel(text), x, output="f").tolist() == [1, 2]
    (kept,) = (p for p in (tmp_path / "cache" / "compiled").glob("*/*") if b"opaque" in p.read_bytes())
    whole = kept.read_bytes()
    kept.chmod(0o600)
    kept.write_bytes(whole[: len(whole) // 2])
    assert forge.run(forge.kernel(text), x, output="f").tolist() == [1, 2]
    assert kept.read_bytes() == whole
