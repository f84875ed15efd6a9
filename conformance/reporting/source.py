"""The source: which commit lay in the folder where a run was started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from mlx_assay.conformance.reporting.report import Source

LIMIT = 5.0
"""Seconds for git to answer."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PLAIN = ("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
"""No pager, no lock, no hook, and no monitor, which is a program that a repository may name."""

_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


def source(folder: Path | None = None) -> Source:
    """The commit of a folder, the current one by default, and whether files that git knows differ from it.

    Where there is no git or no repository it is GITHUB_SHA, in a job of GitHub Actions, or empty. Where git's answer
    does not come, the files count as different.
    """
    folder = folder or Path.cwd()
    if shutil.which("git") is None or not _in_repository(folder):
        named = os.environ.get("GITHUB_SHA", "")
        return Source(commit=named if _COMMIT.fullmatch(named) else "")
    commit = _asked(folder, "rev-parse", "--verify", "HEAD")
    if commit is None or not _COMMIT.fullmatch(commit):
        return Source()
    status = _asked(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=none")
    return Source(commit=commit, dirty=status != "")


def _in_repository(folder: Path) -> bool:
    return any((above / ".git").exists() for above in (folder, *folder.parents))


def _asked(folder: Path, *words: str) -> str | None:
    """What git prints; None where it fails or takes too long."""
    clean = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(
            ["git", *_PLAIN, *words],
            cwd=folder,
            env=clean | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
