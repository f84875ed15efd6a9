"""Containers, wheels and calls of Apple's compiled kernels: what is damaged, missing or wrong is refused and named."""

from __future__ import annotations

import random
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlx_assay.impl.executors.apple.air import UnknownFunction
from mlx_assay.impl.executors.apple.container import Container, MetallibError
from mlx_assay.impl.executors.apple.kernel import load
from mlx_assay.impl.executors.apple.wheel import WheelError, extract, metallib
from mlx_assay.impl.executors.folder import Untrusted


def test_a_container_gives_every_kernel_its_bitcode(forge: Any, tmp_path: Path) -> None:
    functions = {"first": b"abc", "second": b"", "third": bytes(range(200))}
    (tmp_path / "a.metallib").write_bytes(forge.container(functions))
    assert dict(Container(tmp_path / "a.metallib")) == functions


def test_no_damage_of_a_container_goes_unseen(forge: Any, tmp_path: Path) -> None:
    functions = {"first": b"abc", "second": bytes(range(200))}
    whole, rng, refused = forge.container(functions), random.Random(3), 0
    path = tmp_path / "a.metallib"
    damaged = [whole[:n] for n in range(0, len(whole), 7)]
    for _ in range(1500):
        at = rng.randrange(len(whole))
        damaged.append(whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :])
    for data in damaged:
        path.write_bytes(data)
        try:
            found = Container(path)
            for name, bitcode in functions.items():
                assert name not in found or found[name] == bitcode
        except MetallibError:
            refused += 1
    assert refused > 400


def test_a_wheel_whose_library_is_not_its_records_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mlx_metal.whl", "w") as wheel:
        wheel.writestr("mlx/lib/mlx.metallib", b"other")
        wheel.writestr("mlx_metal.dist-info/RECORD", f"mlx/lib/mlx.metallib,sha256={'A' * 43},5\n")
    with pytest.raises(WheelError, match="another SHA-256"):
        extract(tmp_path / "mlx_metal.whl", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("version", ["latest", "0.32.4; rm", "../1.2"])
def test_what_is_no_version_is_not_asked_for(version: str) -> None:
    with pytest.raises(ValueError, match="expected a version"):
        metallib(version)


def test_a_library_that_others_could_have_put_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLX_ASSAY_CACHE", str(tmp_path))
    planted = tmp_path / "metallib" / "0.1.0.metallib"
    planted.parent.mkdir(mode=0o700)
    planted.write_bytes(b"")
    planted.chmod(0o600)
    assert metallib("0.1.0") == planted
    planted.chmod(0o666)
    with pytest.raises(Untrusted, match=r"0\.1\.0\.metallib can be written by others"):
        metallib("0.1.0")
    planted.chmod(0o600)
    planted.parent.chmod(0o777)
    with pytest.raises(Untrusted, match=r"metallib can be written by others \(mode 777\)"):
        metallib("0.1.0")


def test_an_unknown_function_is_named_when_the_kernel_is_loaded(forge: Any) -> None:
    with pytest.raises(UnknownFunction, match=r"float air\.telepathy\.f32\(float\)"):
        forge.kernel(forge.call("air.telepathy.f32", "f", "f"))


def test_an_address_space_beyond_threadgroup_is_refused(forge: Any) -> None:
    text = forge.elementwise("%r = load float, ptr addrspace(5) null", "f", "f", "")
    with pytest.raises(MetallibError, match=r"address spaces \['5'\]"):
        forge.kernel(text)


def test_a_missing_buffer_and_a_wrong_one_are_named(forge: Any) -> None:
    kernel = forge.kernel(forge.call("air.fabs.f32", "f", "f"))
    x, out = np.zeros(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="buffer 1 is missing"):
        kernel([x], grid=4, threadgroup=4)
    with pytest.raises(ValueError, match="has no buffer 2"):
        kernel([x, out, x], grid=4, threadgroup=4)
    with pytest.raises(ValueError, match=r"buffer 1 .*expected a writable NumPy array but got bytes"):
        kernel([x, bytes(16)], grid=4, threadgroup=4)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="expected a writable NumPy array"):
        kernel([x, out], grid=4, threadgroup=4)
    with pytest.raises(TypeError, match=r"got int, expected .* np\.int32"):
        kernel([3, x], grid=4, threadgroup=4)
    with pytest.raises(ValueError, match="expected a multiple of 4"):
        kernel([np.zeros(17, np.uint8)[1:], x], grid=4, threadgroup=4)
    with pytest.raises(TypeError, match=r"buffer 0 .*got float64, expected float"):
        kernel([np.zeros(4), x], grid=4, threadgroup=4)
    with pytest.raises(TypeError, match=r"grid= \(threads\) or threadgroups="):
        kernel([x, x.copy()], threadgroup=4)


def test_a_kernel_that_is_not_there_is_answered_with_its_neighbours(forge: Any, tmp_path: Path) -> None:
    forge.kernel(forge.call("air.fabs.f32", "f", "f"))
    with pytest.raises(KeyError, match="no kernel 'kk': the nearest are k"):
        load(tmp_path / "forged.metallib").function("kk")


def test_kernels_are_made_and_run_by_many_threads_at_once(forge: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MLX_ASSAY_CACHE", str(tmp_path / "cache"))
    forge.kernel(forge.call("air.simd_sum.s.i32", "i", "i"))
    library, x = load(forge.path), np.arange(1024, dtype=np.int32)
    expected = x.reshape(-1, 32).sum(1).repeat(32).tolist()

    def work(number: int) -> list[int]:
        # Contraction is part of the key: two objects, each wanted by several threads.
        kernel, out = library.function("k", contraction=number % 2 == 0), np.zeros_like(x)
        for _ in range(20):
            out[:] = 0
            kernel([x, out], grid=1024, threadgroup=256)
        return list(out.tolist())

    with ThreadPoolExecutor(8) as pool:
        assert all(result == expected for result in pool.map(work, range(16)))
    entries = [p.parent for p in (tmp_path / "cache" / "compiled").glob("*/*") if b"air.simd_sum" in p.read_bytes()]
    assert len(entries) == 2
