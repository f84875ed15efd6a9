"""A copy of the repository in which one text is changed at a time, and the self-tests that run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from mlx_assay.conformance.mutation import resumption
from mlx_assay.conformance.mutation.bench import CACHE
from mlx_assay.conformance.mutation.judge.texts import text_of
from mlx_assay.impl.executors.cache import cache_directory

PACKAGES = ("conformance", "fixtures", "impl", "oracles")
CARRIED = (*PACKAGES, "ci", "docs", "pyproject.toml", "README.md")
"""Parts of a repository that self-tests read."""
UNDECIDING = {
    *(f"conformance/mutation/judge/{name}" for name in ("equivalents.toml", "killers.json", "texts.py")),
    "docs/mutants.md",
}
"""What no ruling depends on: reasons, the order of tests, which tests a text has (see `digests`), words about it."""
SERVER = "conformance/mutation/judge/server.py"


class WorkbenchError(RuntimeError):
    """Self-tests cannot be run here."""


def repository() -> Path:
    """The checkout that this package is installed from. WorkbenchError: it is not in one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "ci" / "selftest").is_dir():
        raise WorkbenchError(
            f"Expected self-tests in {root / 'ci' / 'selftest'} but there are none: "
            "install mlx-assay from its repository with `pip install -e .`"
        )
    return root


def surroundings() -> str:
    """A digest of what rules on faults but for the self-tests, see resumption.py."""
    root = repository()
    own = {str(path.relative_to(root)) for path in (root / "ci" / "selftest").rglob("*")}
    return resumption.ground({name: root / name for name in CARRIED}, own | UNDECIDING)


def digests(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Of texts by name: a digest of each of the files of self-tests that have to notice their faults."""
    folder = repository() / "ci" / "selftest"
    of = cache(lambda test: resumption.digest_of_tests(folder, test))
    return {name: {f"ci/selftest/{test}": of(test) for test in text_of(name).tests} for name in names}


class Workbench:
    """A copy under the name `mlx_assay`, which its own processes import in place of the installed packages."""

    def __init__(self, shared: Path, part: int = 0) -> None:
        root = repository()
        self._site = shared / f"bench_{part}"
        self.root = self._site / "mlx_assay"
        for name in CARRIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            elif source.exists():
                self.root.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, self.root / name)
        self._server: subprocess.Popen[str] | None = None
        self._changes = 0
        self._name = self._served = ""

    def close(self) -> None:
        """Ends the process that runs tests."""
        if self._server is not None:
            assert self._server.stdin is not None
            assert self._server.stdout is not None
            self._server.stdin.close()
            self._server.wait()
            self._server.stdout.close()
            self._server = None

    @contextmanager
    def changed(self, name: str, text: str) -> Iterator[None]:
        """While a text of the copy is another one."""
        path = self.root / name
        before, known = path.read_text("utf-8"), path.stat()
        self._changes += 1
        self._name = name
        try:
            path.write_text(text, "utf-8")
            # Bytecode goes by the second and the length of its text: two texts of one length are seconds apart.
            os.utime(path, (known.st_atime, known.st_mtime + 2 * self._changes))
            yield
        finally:
            path.write_text(before, "utf-8")
            os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))

    def noticed(self, tests: Sequence[str], first: Sequence[str], seconds: float, compiled: bool) -> tuple[str, str]:
        """The first test that fails, and what it said; `compiled`: kernels are kept apart from those of everybody."""
        return self._asked(tests, first, seconds, str(cache_directory() / CACHE if compiled else cache_directory()))

    def _asked(self, tests: Sequence[str], first: Sequence[str], seconds: float, cache: str) -> tuple[str, str]:
        server = self._started(tests)
        assert server.stdin is not None
        assert server.stdout is not None
        asked = {"tests": list(tests), "first": list(first), "seconds": seconds, "cache": cache}
        try:
            print(json.dumps(asked), file=server.stdin, flush=True)
            answer = server.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise WorkbenchError("The process that runs self-tests ended: run the campaign again")
        said = json.loads(answer)
        return said["by"], said["text"]

    def _started(self, tests: Sequence[str]) -> subprocess.Popen[str]:
        """The process for the text that is changed; one for each, since each leaves other modules as they are."""
        if self._served != self._name:
            self.close()
            self._served = self._name
        if self._server is None:
            module = "" if not self._name.endswith(".py") else f"mlx_assay.{self._name[:-3].replace('/', '.')}"
            files = sorted({test.partition("::")[0] for test in tests})
            # Bytecode is written beside the copy, lest every fork compile what it imports.
            settings = {"PYTHONPATH": str(self._site), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
            self._server = subprocess.Popen(
                [sys.executable, "-P", str(self.root / SERVER), module, *files],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self.root,
                env={**os.environ, **settings},
            )
        return self._server
