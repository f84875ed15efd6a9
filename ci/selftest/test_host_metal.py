"""`host_metal()`: third-party code sees a Mac while it holds, and nothing of it afterwards."""

from __future__ import annotations

import importlib
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl import host_metal
from mlx_assay.impl.executors import Kernel, RememberedNoMetal, current, remembering, use

NAMES = {
    "core": ("default_device", "set_default_device", "is_available", "device_count", "device_info", "stream"),
    "streams": ("new_stream", "default_stream", "synchronize", "enable_compile", "disable_compile"),
}
SOURCE = "y[thread_position_in_grid.x] = x[thread_position_in_grid.x] + 1.0f;"
pytestmark = pytest.mark.filterwarnings("ignore::mlx_assay.impl.executors.RememberedNoMetal")


def state() -> dict[str, Any]:
    found = {name: getattr(mx, name) for names in NAMES.values() for name in names}
    found |= {"add": mx.add, "sum": mx.array.sum}
    return found | {"metal_kernel": mx.fast.metal_kernel, "metal": mx.metal.is_available, "compile": compiles()}


def compiles() -> bool:
    """Whether mx.compile traces now: a compiled function's argument cannot be printed."""
    seen: list[bool] = []

    def probe(x: mx.array) -> mx.array:
        try:
            mx.eval(x)
            seen.append(False)
        except ValueError:
            seen.append(True)
        return x

    mx.compile(probe)(mx.array(1.0))
    return seen[0]


def add_one(x: mx.array) -> mx.array:
    kernel = mx.fast.metal_kernel(name="add_one", input_names=["x"], output_names=["y"], source=SOURCE)
    (y,) = kernel(
        inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(x.size, 1, 1), threadgroup=(32, 1, 1)
    )
    return y


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = state()
    yield
    assert state() == before


def test_answers_are_a_macs() -> None:
    with host_metal():
        assert mx.metal.is_available()
        assert mx.default_device() == mx.gpu
        assert mx.is_available(mx.gpu)
        assert mx.device_count(mx.gpu) == 1
        assert mx.device_info()["max_recommended_working_set_size"] > 2**28
        assert current() == "host"
        assert add_one(mx.arange(10.0)).tolist() == [i + 1.0 for i in range(10)]


def test_streams_of_the_gpu_are_the_cpus() -> None:
    with host_metal():
        stream = mx.new_stream(mx.default_device())
        with mx.stream(stream):
            assert add_one(mx.array([1.0])).item() == 2.0
        with mx.stream(mx.gpu):
            assert (mx.array([1.0]) + 1).item() == 2.0
        mx.synchronize(mx.default_stream(mx.default_device()))


@pytest.mark.parametrize(
    "use",
    [
        lambda device: mx.add(mx.array([1.0]), 1, stream=device),
        lambda device: mx.random.uniform(1, 1, (1,), stream=device) + 1,
        lambda device: mx.array([[1.0, 1.0]]).sum(axis=1, stream=device),
        lambda device: mx.fast.rms_norm(mx.array([2.0]), None, 0.0, stream=device) * 2,
        lambda device: mx.fft.fft(mx.array([2.0]), 1, 0, "backward", device).real,
    ],
    ids=["operation", "random", "method", "fast", "by position"],
)
def test_an_operation_on_the_gpu_runs_on_the_cpu(use: Any) -> None:
    with host_metal():
        for device in (mx.gpu, mx.default_device()):
            assert use(device).tolist() == [2.0]


def test_what_it_gives_is_entered_again_and_decorates() -> None:
    inside = host_metal()
    for _ in range(2):
        with inside, inside:
            assert mx.metal.is_available()

    @host_metal()
    def answer() -> bool:
        return bool(mx.metal.is_available())

    assert [answer(), answer()] == [True, True]


def test_the_default_device_can_be_set() -> None:
    with host_metal():
        mx.set_default_device(mx.cpu)
        assert mx.default_device() == mx.cpu
        mx.set_default_device(mx.gpu)
        assert mx.default_device() == mx.gpu
    assert mx.default_device() == mx.Device(mx.cpu, 0) or mx.metal.is_available()


def test_compiled_functions_are_called_with_values() -> None:
    function = mx.compile(lambda x: add_one(x) * 2)
    with host_metal():
        assert not compiles()
        assert function(mx.array([1.0])).item() == 4.0
        mx.enable_compile()
        assert not compiles()
    assert compiles()


def test_a_wish_about_compilation_is_met_at_the_end() -> None:
    try:
        with host_metal():
            mx.disable_compile()
        assert not compiles()
        with host_metal():
            assert not compiles()
        assert not compiles()
    finally:
        mx.enable_compile()


def test_nested_uses_hold_until_the_outer_ends() -> None:
    with host_metal():
        with host_metal():
            assert mx.metal.is_available()
        assert mx.metal.is_available()
        assert add_one(mx.array([3.0])).item() == 4.0


def test_an_exception_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), host_metal(), host_metal():
        raise ZeroDivisionError


def test_threads_share_it() -> None:
    inside, leave, answers = threading.Event(), threading.Event(), []

    def first() -> None:
        with host_metal():
            inside.set()
            leave.wait(30)
            answers.append(mx.metal.is_available())

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(30)
    answers.append(mx.metal.is_available())
    answers.append(add_one(mx.array([1.0])).item())
    with host_metal():
        answers.append(mx.metal.is_available())
    leave.set()
    thread.join(30)
    assert answers == [True, 2.0, True, True]


def test_a_kernel_made_inside_keeps_running() -> None:
    with host_metal():
        kernel = mx.fast.metal_kernel("later", ["x"], ["y"], SOURCE)
    assert isinstance(kernel, Kernel)
    with use("host"):
        (y,) = kernel(
            inputs=[mx.array([1.0])],
            output_shapes=[(1,)],
            output_dtypes=[mx.float32],
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
        )
    assert y.item() == 2.0


REMEMBERING = {
    "none": ("import mlx.core as mx\n_sum_kernel = None", "_sum_kernel is None"),
    "answer": ("import mlx.core as mx\nHAS_METAL = False", "HAS_METAL is False"),
    "function": ("from mlx.core import default_device", "default_device is mx.default_device itself"),
    "query": ("import mlx.core as mx\nasked = mx.metal.is_available", "asked is mx.metal.is_available itself"),
    "maker": ("from mlx.core.fast import metal_kernel", "metal_kernel is mx.fast.metal_kernel itself"),
    "attribute": ("import mlx.core as mx\nclass C:\n  kernel = None", "C.kernel is None"),
    "device": ("import mlx.core as mx\nDEVICE = mx.default_device()", "DEVICE is Device(cpu, 0)"),
    "default": (
        "import mlx.core as mx\nclass C:\n  def f(self, d=mx.default_device()): pass",
        "C.f(d=) is Device(cpu, 0)",
    ),
    "keyword": (
        "import mlx.core as mx\ndef f(*, make=mx.fast.metal_kernel): pass",
        "f(make=) is mx.fast.metal_kernel itself",
    ),
    "closure": (
        "import mlx.core as mx\ndef f(make):\n  return lambda: make\ng = f(mx.fast.metal_kernel)",
        "g, its make is mx.fast.metal_kernel itself",
    ),
    "partial": (
        "import functools, mlx.core as mx\nmake = functools.partial(mx.fast.metal_kernel, name='n')",
        "make.func is mx.fast.metal_kernel itself",
    ),
    "dictionary": (
        "import mlx.core as mx\nTABLE = {'gpu': [mx.metal.is_available]}",
        "TABLE['gpu'][...] is mx.metal.is_available itself",
    ),
    "kernel": (
        "import mlx.core as mx\nmake = mx.fast.metal_kernel('n', ['x'], ['y'], '')",
        "make is a kernel of MLX",
    ),
}


@pytest.fixture
def module(request: pytest.FixtureRequest) -> Iterator[types.ModuleType]:
    made = types.ModuleType("third_party_of_a_test")
    exec(request.param, vars(made))
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


@pytest.mark.parametrize(("module", "told"), REMEMBERING.values(), ids=REMEMBERING, indirect=["module"])
@pytest.mark.skipif(mx.metal.is_available(), reason="asks what is kept where there is no Metal")
def test_modules_that_remember_are_named(module: types.ModuleType, told: str) -> None:
    assert remembering()[module.__name__] == [told]
    with pytest.warns(RememberedNoMetal, match=module.__name__) as caught, host_metal():
        pass
    warning = next(w for w in caught if w.category is RememberedNoMetal)
    assert told in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    "module",
    [
        "_sum_kernel = None",
        "import mlx.core as mx\nkernel_size = 3\nmetal = None\n_kernel = len",
        "gpu = False",
        "import mlx.core as mx\nCPU = mx.Device(mx.cpu)\nDEVICES = [CPU]\ndef f(use_gpu=False, kernel=None): pass",
        "import mlx.core as mx\nclass Options:\n  use_metal: bool = False",
        "import mlx.core as mx\nSETTINGS = {'gpu': False}\nSETTINGS['itself'] = SETTINGS",
    ],
    indirect=True,
)
def test_modules_that_do_not_are_not(module: types.ModuleType) -> None:
    assert module.__name__ not in remembering()


@pytest.mark.parametrize("module", ["import mlx.core as mx\n_kernel = None"], indirect=True)
def test_a_warning_that_is_an_error_leaves_nothing(module: types.ModuleType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RememberedNoMetal, match=module.__name__), host_metal():
            pytest.fail("the warning is raised before")


def test_reloading_inside_mends_a_module() -> None:
    pytest.importorskip("mlx_lm", reason="looks at a model of mlx-lm")
    gated_delta = importlib.import_module("mlx_lm.models.gated_delta")
    try:
        with host_metal():
            importlib.reload(gated_delta)
            assert isinstance(gated_delta._gated_delta_kernel, Kernel)
    finally:
        importlib.reload(gated_delta)


def test_the_fixture(host_metal: None) -> None:
    assert mx.metal.is_available()
    assert add_one(mx.array([1.0])).item() == 2.0
