"""Which of MLX's stock kernels have results that a function decides whose bits no one has published.

Both doors call this machine's C library there, so that their equality says nothing of a GPU: only bounds hold.
Elementwise kernels are named by their operation, the others by their function in MLX's headers.
"""

_EXP = ("air.fast_exp.f32",)
_TURNS = ("air.fast_cos.f32", "air.fast_sin.f32")

OPAQUE: dict[str, tuple[str, ...]] = {
    **{f"Arc{name}": (f"air.a{name.lower()}.f32",) for name in ("Cos", "Cosh", "Sin", "Sinh", "Tan", "Tanh")},
    **{name: (f"air.{name.lower()}.f32",) for name in ("Cos", "Cosh", "Exp", "Log", "Log10", "Log2", "Rsqrt")},
    **{name: (f"air.{name.lower()}.f32",) for name in ("Sin", "Sinh", "Tan", "Tanh")},
    "ArcTan2": ("air.atan2.f32",),
    "Expm1": ("air.pow.f32",),
    "Log1p": ("air.log.f32",),
    "LogAddExp": ("air.exp.f32", "air.log.f32"),
    "Power": ("air.pow.f32",),
    "Sigmoid": ("air.exp.f32",),
    "attention": ("air.fast_exp2.f32", "air.log2.f32"),
    "bluestein_fft": _TURNS,
    "contiguous_scan": ("air.exp.f32", "air.log.f32"),
    "cross_entropy": (*_EXP, "air.log.f32"),
    "cross_entropy_vjp": _EXP,
    "fft": _TURNS,
    "four_step_fft": _TURNS,
    "fp_quantize": ("air.log2.f32",),
    "fp_quantize_dequantize": ("air.log2.f32",),
    "gated_delta_fused_chunk": (*_EXP, "air.fast_log.f32"),
    "generate_bluestein_twiddles": _TURNS,
    "logsumexp": (*_EXP, "air.log.f32"),
    "logsumexp_looped": (*_EXP, "air.log.f32"),
    "rader_fft": _TURNS,
    "rms": ("air.rsqrt.f32",),
    "sdpa_vector": _EXP,
    "sdpa_vector_2pass_1": _EXP,
    "sdpa_vector_2pass_1_gqa": _EXP,
    "sdpa_vector_2pass_2": _EXP,
    "softmax_looped": _EXP,
    "softmax_single_row": _EXP,
    "strided_scan": ("air.exp.f32", "air.log.f32"),
}
