"""Where the tests of the language run: on the executor host, and where an NVIDIA GPU is, a second time on cuda."""

import os

import mlx.core as mx
import pytest

EXECUTOR = os.environ.get("MLX_ASSAY_SELFTEST_EXECUTOR", "host")
"""The executor of every test that is about kernel text rather than about one executor; selftest/cuda sets it."""

NEEDS_GPU = pytest.mark.skipif(not mx.cuda.is_available(), reason="NOT RUN: this machine has no NVIDIA GPU")
