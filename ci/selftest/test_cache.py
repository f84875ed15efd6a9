"""The cache of compiled kernels: whole entries, checked before use, bounded, never somebody else's."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.impl.executors import cache, doctor, metal_kernel, objects, use
from mlx_assay.impl.executors.folder import Folder, Untrusted

KEYS = ["a1", "b2", "c3", "d4", "e5"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that starts empty, and a process that knows of no failure."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_process", cache._Process())
    return tmp_path / "cache" / "compiled"


def plus(n: int) -> float:
    """Runs a kernel of its own that adds n to 1."""
    kernel = metal_kernel("plus", ["a"], ["out"], f"out[thread_position_in_grid.x] = a[0] + {n};")
    with use("host"):
        (out,) = kernel(
            inputs=[mx.ones((8,))], output_shapes=[(8,)], output_dtypes=[mx.float32], grid=(8, 1, 1),
            threadgroup=(8, 1, 1),
        )  # fmt: skip
    return float(out[0].item())


def text(content: str) -> Any:
    return lambda path: path.write_text(content)


def kept(key: str, content: str) -> str:
    return cache.kept(key, text(content), Path.read_text)


def objects_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*/*") if p.is_file())


def test_an_entry_is_made_once_and_found_again(own_cache: Path) -> None:
    made = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_text("content")

    for _ in range(3):
        assert cache.kept("abc", make, Path.read_text) == "content"
    assert len(made) == 1
    assert [p.parent.name for p in objects_of(own_cache)] == ["abc"]
    assert own_cache.stat().st_mode & 0o777 == 0o700


def test_what_was_rejected_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a launch plan defines its kernels anew."""
    with use("host"):
        told = []
        for _ in range(2):
            kernel = metal_kernel("wrong", ["a"], ["out"], "out[0] = nothing_defines_this;")
            with pytest.raises(RuntimeError, match="nothing_defines_this") as caught:
                kernel(
                    inputs=[mx.array([1.0])],
                    output_shapes=[(1,)],
                    output_dtypes=[mx.float32],
                    grid=(1, 1, 1),
                    threadgroup=(1, 1, 1),
                )
            told.append(str(caught.value))
            monkeypatch.setattr(objects, "run", lambda command: pytest.fail(f"It ran {command}"))
    assert told[0] == told[1]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign", "link", "open", "extra", "renamed"])
def test_what_is_not_whole_is_made_anew(own_cache: Path, damage: str) -> None:
    kept("abc", "content")
    kept("def", "of another key")
    path, other = (p for k in ("abc", "def") for p in objects_of(own_cache) if p.parent.name == k)
    whole = path.read_bytes()
    path.chmod(0o700)
    if damage == "cut":
        path.write_bytes(whole[:3])
    elif damage == "changed":
        path.write_bytes(b"kontent")
    elif damage == "empty":
        path.unlink()
    elif damage == "foreign":
        path.unlink()
        shutil.copy(other, path.parent / other.name)
    elif damage == "link":
        path.rename(own_cache.parent / "elsewhere")
        path.symlink_to(own_cache.parent / "elsewhere")
    elif damage == "open":
        path.chmod(0o666)
    elif damage == "extra":
        (path.parent / "more").write_text("")
    elif damage == "renamed":
        path.rename(path.with_name("0" * 64))
    made = []
    assert cache.kept("abc", lambda p: made.append(p.write_text("content")), Path.read_text) == "content"
    assert len(made) == 1
    assert kept("abc", "not made again") == "content"
    assert kept("def", "not made again") == "of another key"


def test_an_object_that_does_not_load_is_made_anew() -> None:
    kept("abc", "old")

    def load(path: Path) -> str:
        if path.read_text() == "old":
            raise OSError("not a library")
        return path.read_text()

    assert cache.kept("abc", text("new"), load) == "new"


def test_the_longest_unused_go_first(own_cache: Path) -> None:
    folder = Folder.trusted(own_cache)
    for i, key in enumerate(KEYS):
        kept(key, "x" * 1000)
        os.utime(own_cache / key, (i + 1, i + 1))
    assert [e.key for e in folder.entries()] == KEYS
    assert kept("a1", "used again") == "x" * 1000
    assert folder.shrink(5000) == 0
    assert folder.shrink(3000) == 3, "three, for 3,000 leaves no room"
    assert [e.key for e in folder.entries()] == ["e5", "a1"]
    assert kept("b2", "anew") == "anew"
    assert folder.shrink(0) == 2
    assert [e.key for e in folder.entries()] == ["b2"], "the last used one stays"


def test_the_limit_holds_while_kernels_are_made(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "20K")
    monkeypatch.setattr(cache, "_SHRINK_EACH", 2)
    for i in range(40):
        kept(f"{i:x}", "x" * 1000)
    entries = Folder.trusted(own_cache).entries()
    assert sum(e.bytes for e in entries) <= 22_000
    assert len(entries) >= 15


def test_what_a_killed_process_left_is_removed(own_cache: Path) -> None:
    kept("abc", "content")
    for name, age in (("work-old", 7200), ("work-new", 0)):
        (own_cache / name).mkdir()
        os.utime(own_cache / name, (time.time() - age,) * 2)
    Folder.trusted(own_cache).shrink(10**9)
    assert not (own_cache / "work-old").exists()
    assert (own_cache / "work-new").exists()


@pytest.mark.parametrize(
    ("given", "want"),
    [("", 512 << 20), ("4096", 4096), ("1.5K", 1536), ("64M", 64 << 20), ("2GiB", 2 << 30), ("1tb", 1 << 40)],
)
def test_limits(given: str, want: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, given)
    assert cache.limit() == want


@pytest.mark.parametrize("given", ["much", "-1", "1P", "K"])
def test_a_limit_that_cannot_be_meant_is_named(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, given)
    with pytest.raises(cache.CacheError, match=f"MLX_ASSAY_CACHE_LIMIT is '{given}': expected bytes"):
        cache.limit()
    found = cache.problem()
    assert found is not None
    assert found.mend == "unset MLX_ASSAY_CACHE_LIMIT, or set it to a number of bytes"
    assert main(["cache"]) == 3
    with pytest.warns(cache.CacheWarning, match=f"'{given}'"):
        assert kept("abc", "content") == "content"


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cache, "_START", tmp_path / "start")
    monkeypatch.setenv(cache.CACHE_VARIABLE, "here")
    assert cache.cache_directory() == tmp_path / "start" / "here"
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "there"))
    assert cache.cache_directory() == tmp_path / "there"
    monkeypatch.delenv(cache.CACHE_VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/somebody")
    assert cache.cache_directory() == Path("/var/somebody/mlx-assay")
    # The XDG specification: a relative path is invalid and ignored.
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.cache_directory() == Path("/home/somebody/.cache/mlx-assay")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.cache_directory() == Path("/home/somebody/Library/Caches/mlx-assay")


def test_a_relative_cache_stays_where_the_process_began(tmp_path: Path) -> None:
    code = "import os; from mlx_assay.impl.executors import cache; os.chdir('/'); print(cache.cache_directory())"
    variables = os.environ | {cache.CACHE_VARIABLE: "kept"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == str(tmp_path / "kept")


def test_without_a_home_a_private_folder_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(cache.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.warns(cache.CacheWarning, match="no home to keep compiled kernels in: set MLX_ASSAY_CACHE"):
        assert kept("abc", "content") == "content"


def test_a_cache_that_cannot_be_written_is_named_once(own_cache: Path) -> None:
    own_cache.parent.write_text("a file")
    with pytest.warns(cache.CacheWarning) as seen:
        assert plus(41) == 42
    (warning,) = seen
    assert str(own_cache) in str(warning.message)
    assert str(warning.message).endswith("compiled anew in every process: set MLX_ASSAY_CACHE to a folder to write in")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (plus(42), plus(41)) == (43, 42)
    (finding,) = (f for f in doctor() if f.part == "cache")
    assert str(own_cache) in finding.state
    assert finding.mend == "set MLX_ASSAY_CACHE to a folder to write in"


def test_a_full_disk_is_named_and_what_is_there_still_serves(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept("abc", "content")
    real = Folder.publish

    def full(self: Folder, key: str, made: Path) -> Path:
        if self.path == own_cache:
            raise OSError(28, "No space left on device")
        return real(self, key, made)

    monkeypatch.setattr(Folder, "publish", full)
    with pytest.warns(cache.CacheWarning, match="No space left on device"):
        assert kept("def", "more") == "more"
    assert kept("def", "not made again") == "more"
    assert kept("abc", "not made again") == "content"


def test_nowhere_to_keep_a_kernel_is_an_error_with_its_mend(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Folder, key: str, made: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Folder, "publish", full)
    with (
        pytest.warns(cache.CacheWarning),
        pytest.raises(cache.CacheError, match=r"No space left.*set MLX_ASSAY_CACHE to a folder to write in"),
    ):
        kept("abc", "content")


def plant(folder: Path, key: str, content: str) -> None:
    """An entry in good form, as somebody who knows the form would make it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "planted").write_text(content)
    Folder(folder).publish(key, folder.parent / "planted")


def test_a_folder_that_others_can_write_is_not_used(own_cache: Path) -> None:
    plant(own_cache, "abc", "planted")
    own_cache.chmod(0o777)
    with pytest.warns(cache.CacheWarning, match=r"can be written by others \(mode 777\).*chmod go-w"):
        assert kept("abc", "own") == "own"
    own_cache.chmod(0o700)
    own_cache.parent.chmod(0o777)
    with pytest.raises(Untrusted, match="can be written by others"):
        cache.shared()
    own_cache.parent.chmod(0o1777)
    assert cache.shared().path == own_cache


def test_what_belongs_to_another_user_is_not_loaded(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(own_cache, "abc", "planted")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(cache.CacheWarning, match=f"belongs to user {owner}, not to {owner + 1}"):
        assert kept("abc", "own") == "own"
    assert "not loaded" in str(cache.problem())


def test_a_planted_object_of_another_user_in_an_own_folder(own_cache: Path) -> None:
    plant(own_cache, "abc", "planted")
    (path,) = objects_of(own_cache)
    if os.geteuid():
        path.chmod(0o777)
    else:
        os.chown(path, 12345, 12345)
    assert kept("abc", "own") == "own"


def test_a_link_for_a_folder_is_not_followed(own_cache: Path, tmp_path: Path) -> None:
    plant(tmp_path / "theirs", "abc", "planted")
    own_cache.parent.mkdir()
    own_cache.symlink_to(tmp_path / "theirs")
    with pytest.warns(cache.CacheWarning, match="is no folder"):
        assert kept("abc", "own") == "own"


SCRIPT = """
import sys, mlx.core as mx
from mlx_assay.impl.executors import metal_kernel, use
k = metal_kernel("cold", ["a"], ["out"], "out[thread_position_in_grid.x] = a[0] * 3.0f;")
with use("host"):
    out = k(inputs=[mx.ones((8,))], output_shapes=[(8,)], output_dtypes=[mx.float32], grid=(8, 1, 1),
            threadgroup=(8, 1, 1))
print(out[0].tolist()[0])
"""


def test_many_processes_on_one_cold_cache(own_cache: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert [p.communicate(timeout=120)[0].strip() for p in running] == ["3.0"] * 6
    parts = len(objects.RUNTIME_SOURCES)
    assert len(objects_of(own_cache)) == parts + 4, (
        "the scheduler and its parts, one kernel, the prelude and what clang made of it"
    )
    assert list(own_cache.glob("work-*")) == []


def test_damaged_kernels_compute_rightly(own_cache: Path) -> None:
    def run() -> str:
        return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120).stdout

    assert run() == "3.0\n"
    whole = {path: path.read_bytes() for path in objects_of(own_cache)}
    for path, content in whole.items():
        path.chmod(0o700)
        path.write_bytes(content[:-200] if len(content) % 2 else content[:200] + bytes(200) + content[400:])
    assert run() == "3.0\n"
    assert {path: path.read_bytes() for path in objects_of(own_cache)} == whole


def test_threads_make_one_entry_once() -> None:
    made: list[int] = []
    results: list[str] = []

    def make(path: Path) -> None:
        made.append(1)
        time.sleep(0.05)
        path.write_text("content")

    threads = [
        threading.Thread(target=lambda: results.append(cache.kept("abc", make, Path.read_text))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["content"] * 16
    assert len(made) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_not_stopped_by_a_lock_of_its_parent() -> None:
    entered, leave = threading.Event(), threading.Event()

    def make(path: Path) -> None:
        entered.set()
        leave.wait(60)
        path.write_text("content")

    thread = threading.Thread(target=lambda: cache.kept("abc", make, Path.read_text))
    thread.start()
    entered.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if kept("abc", "of the child") == "of the child" else 1)
    try:
        deadline = time.monotonic() + 30
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ended == (child, 0)
    finally:
        leave.set()
        thread.join()


def test_the_verb_tells_and_clears(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept("abc", "x" * 2000)
    kept("def", "y" * 3000)
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert str(own_cache) in out
    assert "2 entries" in out
    assert "512 MiB" in out
    assert main(["cache", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(own_cache)
    assert (told["entries"], told["bytes"], told["limit"]) == (2, 5000, 512 << 20)
    assert told["problem"] is None
    assert main(["cache", "--clear"]) == 0
    assert "removed 2 entries" in capsys.readouterr().out
    assert objects_of(own_cache) == []


def test_the_verb_names_a_cache_that_cannot_be_used(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_cache.parent.write_text("a file")
    assert main(["cache"]) == 3
    captured = capsys.readouterr()
    assert "no kernel cache at" in captured.out + captured.err
    assert "set MLX_ASSAY_CACHE" in captured.out + captured.err
