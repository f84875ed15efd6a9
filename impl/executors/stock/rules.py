"""The forms of MLX's names of its stock kernels, each with the function and the template arguments behind it.

Read off MLX 0.32's own library: its dispatch asks for kernels by these names.
"""

from dataclasses import dataclass

_TYPE = "float32|float16|bfloat16|complex64|bool_|u?int(?:8|16|32|64)"
_QUANTISED = "float16_t|bfloat16_t|float"
_GEMM = r"_bm(?P<bm>\d+)_bn(?P<bn>\d+)_bk(?P<bk>\d+)_wm(?P<wm>\d+)_wn(?P<wn>\d+)"
_TILE = "{bm}, {bn}, {bk}, {wm}, {wn}"
_GEMV = r"_bm(?P<bm>\d+)_bn(?P<bn>\d+)_sm(?P<sm>\d+)_sn(?P<sn>\d+)_tm(?P<tm>\d+)_tn(?P<tn>\d+)"

_UNARY = ("unary_ops.h", "unary.h")
_BINARY = ("binary_ops.h", "binary.h")
_DIVMOD = ("binary_ops.h", "binary_two.h")
_TERNARY = ("ternary_ops.h", "ternary.h")
_REDUCE = ("reduce_utils.h", "reduce.h")
_STEEL = "steel/gemm/gemm.h"
_AFFINE = (_STEEL, "quantized_utils.h", "quantized.h")
_FP = (_STEEL, "quantized_utils.h", "fp_quantized.h")
_CONV = ("steel/conv/conv.h",)


@dataclass(frozen=True)
class Rule:
    """How names of one form are read. In `arguments` groups of `pattern` stand in braces; t.. and u.. are types."""

    pattern: str
    headers: tuple[str, ...]
    function: str
    arguments: str


def _grown(kinds: dict[str, tuple[str, str]], tail: str, headers: tuple[str, ...], head: str) -> list[Rule]:
    """Rules of elementwise kernels, whose prefix decides the function and its last arguments."""
    return [
        Rule(rf"{prefix}_{tail}", headers, function, ", ".join(a for a in (head, last) if a))
        for prefix, (function, last) in kinds.items()
    ]


_BINARY_KINDS = {
    "ss": ("binary_ss", ""),
    **{k: (f"binary_{k}", "1") for k in ("sv", "vs", "vv")},
    **{f"{k}n": (f"binary_{k}", "") for k in ("sv", "vs", "vv")},
    **{f"{k}2": (f"binary_{k}2", "") for k in ("sv", "vs", "vv")},
    **{f"g{n}": (f"binary_g_nd{n}", "int") for n in (1, 2, 3)},
    **{f"g{n}large": (f"binary_g_nd{n}", "") for n in (1, 2, 3)},
    "gn2": ("binary_g", "2, int"),
    "gn4large": ("binary_g", "4"),
}
_UNARY_KINDS = {
    "v": ("unary_v", "1"),
    "vn": ("unary_v", ""),
    "v2": ("unary_v2", ""),
    "gn1": ("unary_g", "1, int"),
    "gn4large": ("unary_g", "4"),
}
_TERNARY_KINDS = {
    **{k: ("ternary_v", f"{s}, 1") for k, s in (("v", "false, false"), ("vs", "false, true"), ("sv", "true, false"))},
    **{f"{k}n": ("ternary_v", s) for k, s in (("v", "false, false"), ("vs", "false, true"), ("sv", "true, false"))},
    **{f"{k}2": ("ternary_v2", s) for k, s in (("v", "false, false"), ("vs", "false, true"), ("sv", "true, false"))},
    **{f"g{n}": (f"ternary_g_nd{n}", "int") for n in (1, 2, 3)},
    **{f"g{n}large": (f"ternary_g_nd{n}", "") for n in (1, 2, 3)},
    "gn2": ("ternary_g", "2, int"),
    "gn4large": ("ternary_g", "4"),
}
_COPY_KINDS = {
    **{"s": ("copy_s", "1"), "v": ("copy_v", "1"), "sn": ("copy_s", ""), "vn": ("copy_v", "")},
    **{"s2": ("copy_s2", ""), "v2": ("copy_v2", ""), "gn2": ("copy_g", "2, int"), "gn4large": ("copy_g", "4")},
    **{f"{g}{n}": (f"copy_{g}_nd{n}", "int") for g in ("g", "gg") for n in (1, 2, 3)},
    **{f"{g}{n}large": (f"copy_{g}_nd{n}", "") for g in ("g", "gg") for n in (1, 2, 3)},
    **{f"gg{n}_dynamic": (f"copy_gg_dynamic_nd{n}", "int") for n in (1, 2, 3)},
    **{f"gg{n}large_dynamic": (f"copy_gg_dynamic_nd{n}", "") for n in (1, 2, 3)},
    **{"ggn2": ("copy_gg", "2, int"), "ggn4large": ("copy_gg", "4")},
    **{"ggn2_dynamic": ("copy_gg_dynamic", "2, int"), "ggn4large_dynamic": ("copy_gg_dynamic", "4")},
}

_REDUCTION = rf"(?P<op>and|or|sum|prod|min|max)(?P<t>{_TYPE})"
_REDUCED = "{t}, {out}, {Op}<{out}>"
_SCAN = rf"_(?P<rev>reverse_)?(?P<inc>in|ex)clusive_(?P<op>sum|prod|min|max|logaddexp)_(?P<t>{_TYPE})_(?P<u>{_TYPE})"
_MM = rf"(?P<ta>n|t)(?P<tb>n|t)_(?P<t>{_TYPE})_(?P<u>{_TYPE})"
_ALIGNED = "_MN_(?P<mn>t|n)aligned_K_(?P<k>t|n)aligned"
_MASKED = rf"_outmask_(?P<t1>nomask|{_TYPE})_opmask_(?P<t2>nomask|{_TYPE})_"

RULES: tuple[Rule, ...] = (
    Rule(rf"arange(?P<t>{_TYPE})", ("arange.h",), "arange", "{t}"),
    *_grown(_TERNARY_KINDS, rf"(?P<op>Select)(?P<t>{_TYPE})", _TERNARY, "{t}, {op}"),
    *_grown(_UNARY_KINDS, rf"(?P<op>[A-Z]\w+?)(?P<t>{_TYPE})(?P<u>{_TYPE})", _UNARY, "{t}, {u}, {op}"),
    *_grown(_BINARY_KINDS, rf"(?P<op>DivMod)(?P<t>{_TYPE})", _DIVMOD, "{t}, {t}, {op}"),
    *_grown(_BINARY_KINDS, rf"(?P<op>[A-Z]\w+?)(?P<t>{_TYPE})", _BINARY, "{t}, {outcome}, {op}"),
    *_grown(_COPY_KINDS, rf"copy(?P<t>{_TYPE})(?P<u>{_TYPE})", ("copy.h",), "{t}, {u}"),
    Rule(rf"block_softmax_(?P<t>{_TYPE})", ("softmax.h",), "softmax_single_row", "{t}"),
    Rule(rf"looped_softmax_(?P<t>{_TYPE})", ("softmax.h",), "softmax_looped", "{t}"),
    Rule(rf"block_softmax_precise_(?P<t>{_TYPE})", ("softmax.h",), "softmax_single_row", "{t}, float"),
    Rule(rf"looped_softmax_precise_(?P<t>{_TYPE})", ("softmax.h",), "softmax_looped", "{t}, float"),
    Rule(rf"block_logsumexp_(?P<t>{_TYPE})", ("logsumexp.h",), "logsumexp", "{t}"),
    Rule(rf"looped_logsumexp_(?P<t>{_TYPE})", ("logsumexp.h",), "logsumexp_looped", "{t}"),
    Rule(rf"cross_entropy_(?P<t>{_TYPE})", ("cross_entropy.h",), "cross_entropy", "{t}"),
    Rule(rf"cross_entropy_vjp_(?P<t>{_TYPE})", ("cross_entropy.h",), "cross_entropy_vjp", "{t}"),
    Rule(rf"init_reduce_{_REDUCTION}", _REDUCE, "init_reduce", "{t}, {Op}<{t}>"),
    Rule(rf"all_reduce_{_REDUCTION}", _REDUCE, "all_reduce", _REDUCED),
    Rule(rf"row_reduce_simple_{_REDUCTION}", _REDUCE, "row_reduce_simple", _REDUCED),
    Rule(
        rf"(?P<f>(?:row_reduce_(?:small|looped))|(?:col_reduce_(?:small|longcolumn)))(?P<large>_large)?"
        rf"_(?P<n>\d)_reduce_{_REDUCTION}",
        *(_REDUCE, "{f}", _REDUCED + ", {index}, {n}"),
    ),
    Rule(
        rf"(?P<f>col_reduce_(?:looped|2pass))(?P<large>_large)?_(?P<n>\d)_(?P<bm>\d+)_(?P<bn>\d+)_reduce_{_REDUCTION}",
        *(_REDUCE, "{f}", _REDUCED + ", {index}, {n}, {bm}, {bn}"),
    ),
    Rule(rf"contig_scan{_SCAN}", ("scan.h",), "contiguous_scan", "{t}, {u}, Cum{Op}<{u}>, {reads}, {inc}, {rev}"),
    Rule(rf"strided_scan{_SCAN}", ("scan.h",), "strided_scan", "{t}, {u}, Cum{Op}<{u}>, {reads}, {inc}, {rev}"),
    Rule(
        rf"c(?P<arg>arg)?_?block_sort_(?P<t>{_TYPE})_(?P<u>{_TYPE})_bn(?P<bn>\d+)_tn(?P<tn>\d+)",
        *(("sort.h",), "block_sort", "{t}, {u}, {arg}, {bn}, {tn}"),
    ),
    Rule(
        rf"nc(?P<arg>arg)?_?block_sort_(?P<t>{_TYPE})_(?P<u>{_TYPE})_bn(?P<bn>\d+)_tn(?P<tn>\d+)",
        *(("sort.h",), "block_sort_nc", "{t}, {u}, {arg}, {bn}, {tn}"),
    ),
    Rule(
        rf"(?P<f>sort|partition|merge)_mbsort_(?P<t>{_TYPE})_(?P<u>{_TYPE})_bn(?P<bn>\d+)_tn(?P<tn>\d+)",
        *(("sort.h",), "mb_block_{f}", "{t}, {u}, true, {bn}, {tn}"),
    ),
    Rule(
        rf"searchsorted_(?P<t>{_TYPE})_(?P<right>left|right)",
        *(("sort.h", "searchsorted.h"), "searchsorted", "{t}, {right}"),
    ),
    Rule(
        rf"dot_product_(?P<t>{_TYPE})_it(?P<it>\d+)_tg(?P<tg>\d+)_sg(?P<sg>\d+)",
        *(("dot.h",), "dot_product", "{t}, {it}, {tg}, {sg}"),
    ),
    Rule(
        rf"(?P<f>gemv(?:_t)?)_(?P<t>{_TYPE}){_GEMV}_nc(?P<nc>\d)_axpby(?P<axpby>\d)",
        *(("gemv.h",), "{f}", "{t}, {bm}, {bn}, {sm}, {sn}, {tm}, {tn}, {nc}, {axpby}"),
    ),
    Rule(
        rf"(?P<f>gemv(?:_t)?_gather)_(?P<t>{_TYPE}){_GEMV}",
        *(("gemv.h",), "{f}", "{t}, {bm}, {bn}, {sm}, {sn}, {tm}, {tn}"),
    ),
    Rule(
        rf"(?P<f>gemv_wide(?:_gather)?)_(?P<t>{_TYPE})_nv(?P<nv>\d+)_kl(?P<kl>\d+)",
        *(("gemv.h",), "{f}", "{t}, {nv}, {kl}"),
    ),
    Rule(
        rf"(?P<f>gemv(?:_t)?){_MASKED}(?P<t>{_TYPE}){_GEMV}_nc(?P<nc>\d)",
        *(("gemv_masked.h",), "{f}_masked", "{t}, {t1}, {t2}, {bm}, {bn}, {sm}, {sn}, {tm}, {tn}, {nc}"),
    ),
    Rule(
        r"(?P<f>fft|rader_fft|bluestein_fft)_mem_(?P<m>\d+)_(?P<i>float2?|complex32_t)_(?P<o>float2?|complex32_t)",
        *(("fft.h",), "{f}", "{m}, {i}, {o}"),
    ),
    Rule(
        r"four_step_mem_(?P<m>\d+)_(?P<i>float2?|complex32_t)_(?P<o>float2?|complex32_t)_(?P<s>\d)_(?P<r>true|false)",
        *(("fft.h",), "four_step_fft", "{m}, {i}, {o}, {s}, {r}"),
    ),
    Rule("generate_bluestein_twiddles", ("fft.h",), "generate_bluestein_twiddles", ""),
    Rule(
        rf"sdpa_vector_(?P<t>{_QUANTISED})_(?P<d>\d+)_(?P<v>\d+)", ("sdpa_vector.h",), "sdpa_vector", "{t}, {d}, {v}"
    ),
    Rule(
        rf"sdpa_vector_2pass_1_(?P<t>{_QUANTISED})_(?P<d>\d+)_(?P<v>\d+)(?:_tk(?P<tk>\d))?",
        *(("sdpa_vector.h",), "sdpa_vector_2pass_1", "{t}, {d}, {v}, {tk}"),
    ),
    Rule(
        rf"sdpa_vector_2pass_1_gqa_(?P<g>\d+)_(?P<t>{_QUANTISED})_(?P<d>\d+)_(?P<v>\d+)",
        *(("sdpa_vector.h",), "sdpa_vector_2pass_1_gqa", "{t}, {d}, {v}, {g}, {hpt}"),
    ),
    Rule(
        rf"sdpa_vector_2pass_2_(?P<t>{_QUANTISED})_(?P<d>\d+)",
        *(("sdpa_vector.h",), "sdpa_vector_2pass_2", "{t}, {d}"),
    ),
    Rule(
        rf"(?P<f>sdpa_blocked_(?:scale_copy|causal_mask))_(?P<t>{_TYPE})", ("sdpa_blocked.h",), "{f}", "{t}"
    ),
    Rule(
        rf"steel_attention_(?P<t>{_TYPE})_bq(?P<bq>\d+)_bk(?P<bk>\d+)_bd(?P<bd>\d+)_bv(?P<bv>\d+)"
        rf"_wm(?P<wm>\d+)_wn(?P<wn>\d+)_mask(?P<t1>{_TYPE})",
        ("steel/attn/attn.h", "steel/attn/kernels/steel_attention.h"),
        *("attention", "{t}, {bq}, {bk}, {bd}, {bv}, {wm}, {wn}, {t1}"),
    ),
    Rule(
        rf"steel_gemm_fused_{_MM}{_GEMM}",
        *((_STEEL, "steel/gemm/kernels/steel_gemm_fused.h"), "gemm", "{t}, " + _TILE + ", {ta}, {tb}"),
    ),
    Rule(
        rf"steel_gemm_splitk_{_MM}{_GEMM}{_ALIGNED}",
        (_STEEL, "steel/gemm/kernels/steel_gemm_splitk.h"),
        *("gemm_splitk", "{t}, {u}, " + _TILE + ", {ta}, {tb}, {mn}, {k}"),
    ),
    Rule(
        rf"steel_gemm_splitk_accum_(?P<t>{_TYPE})_(?P<u>{_TYPE})(?P<axbpy>_axbpy)?",
        *((_STEEL, "steel/gemm/kernels/steel_gemm_splitk.h"), "gemm_splitk_accum{axbpy}", "{u}, {t}"),
    ),
    Rule(
        rf"steel_gather_mm_(?P<rhs>rhs_)?{_MM}{_GEMM}",
        *((_STEEL, "steel/gemm/kernels/steel_gemm_gather.h"), "gather_mm{rhs}", "{t}, " + _TILE + ", {ta}, {tb}"),
    ),
    Rule(
        rf"steel_segmented_mm_{_MM}{_GEMM}",
        *((_STEEL, "steel/gemm/kernels/steel_gemm_segmented.h"), "segmented_mm", "{t}, " + _TILE + ", {ta}, {tb}"),
    ),
    Rule(
        rf"steel_gemm_block{_MASKED}{_MM}{_GEMM}{_ALIGNED}",
        (_STEEL, "steel/gemm/kernels/steel_gemm_masked.h"),
        *("block_masked_gemm", "{t}, {t1}, {t2}, " + _TILE + ", {ta}, {tb}, {mn}, {k}"),
    ),
    Rule(
        rf"implicit_gemm_conv_2d_(?P<t>{_TYPE}){_GEMM}_channel_(?P<c>l|\d)_filter_(?P<small>s|l)",
        (*_CONV, "steel/conv/kernels/steel_conv.h"),
        *("implicit_gemm_conv_2d", "{t}, " + _TILE + ", {c}, {small}"),
    ),
    Rule(
        rf"implicit_gemm_conv_3d_(?P<t>{_TYPE}){_GEMM}_filter_(?P<small>s|l)",
        (*_CONV, "steel/conv/kernels/steel_conv_3d.h"),
        *("implicit_gemm_conv_3d", "{t}, " + _TILE + ", {small}"),
    ),
    Rule(
        rf"implicit_gemm_conv_2d_general_(?P<t>{_TYPE}){_GEMM}",
        *((*_CONV, "steel/conv/kernels/steel_conv_general.h"), "implicit_gemm_conv_2d_general", "{t}, " + _TILE),
    ),
    Rule(
        rf"(?P<f>seq_gated_delta(?:_vjp)?|gated_delta_fused_chunk)_(?P<t>{_QUANTISED})"
        r"_(?P<dk>\d+)_(?P<dv>\d+)_(?P<hk>\d+)_(?P<hv>\d+)_(?P<n>\d+)",
        *(("gated_delta_update.h", "gated_delta_update_vjp.h"), "{delta}", "{t}, {dk}, {dv}, {hk}, {hv}, {n}"),
    ),
    # The numbers behind the tags stand in the order of the template's parameters.
    Rule(
        rf"(?P<f>affine_\w+?)_(?P<t>{_QUANTISED})_gs_(?P<gs>\d+)_b_(?P<b>\d+)(?P<tags>(?:_[a-zN]+_\w+?)*?)(?P<hgs>_hgs)?",
        *(_AFFINE, "{packed}", "{t}, {gs}, {b}{tags}"),
    ),
    Rule(
        rf"(?:nvfp4|mxfp8|mxfp4)_(?P<f>\w+?)_(?P<t>{_QUANTISED})_gs_(?P<gs>\d+)_b_(?P<b>\d+)"
        r"(?P<tags>(?:_[a-zN]+_\w+?)*?)(?P<hgs>_hgs)?",
        *(_FP, "fp_{packed}", "{t}, {gs}, {b}{tags}"),
    ),
)  # fmt: skip
