"""The canary: that it sees a device that hangs, dies, lies or is another, and believes one that answers right."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from scripts import script

WELL = {"absent": "", "fault": "", "class": "g16"}


@pytest.fixture(scope="module")
def canary() -> ModuleType:
    return script("canary")


class Device:
    """A machine whose child does what a test says."""

    def __init__(self, module: ModuleType, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.module, self.program, self.patch = module, folder / "python", patch
        patch.setattr(sys, "executable", str(self.program))

    def asked(self, body: str, *given: str) -> int:
        self.program.write_text(f"#!/bin/sh\n{body}\n")
        self.program.chmod(0o755)
        self.patch.setattr(sys, "argv", ["canary.py", *given])
        return int(self.module.main())


@pytest.fixture
def device(canary: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    return Device(canary, tmp_path, monkeypatch)


def told(**answer: str) -> str:
    return f"cat <<'END'\n{json.dumps(WELL | answer)}\nEND"


@pytest.mark.parametrize(
    ("body", "given", "said"),
    [
        ("sleep 60", ("--limit", "0.2"), "gave no answer within 0.2 s: the GPU or its driver is wedged"),
        ("echo driver gone >&2; exit 5", (), "ended with status 5 before it answered: driver gone"),
        ("kill -ABRT $$", (), "ended with status -6 before it answered"),
        ("echo not json", (), "ended with status 0 before it answered"),
        (told(fault="round 2 of 8 gave mixed[3] = 0"), (), "cannot be trusted: round 2 of 8"),
        (told(absent="executor 'metal' cannot run here"), (), "executor 'metal' cannot run here"),
        (told(**{"class": "paravirtual"}), ("--device-class", "g1?"), "'g1?' but got 'paravirtual'"),
        (told(), ("--planted",), "went by unseen"),
        ("sleep 60", ("--planted", "--limit", "0.2"), "gave no answer within 0.2 s"),
        (told(absent="executor 'metal' cannot run here"), ("--planted",), "cannot run here"),
    ],
)
def test_a_leg_without_a_device_to_trust_is_incomplete(
    body: str, given: tuple[str, ...], said: str, device: Device, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    assert device.asked(body, *given) == 3
    assert time.monotonic() - begun < 10
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (told(), ("--device-class", "g1?")),
        ("kill -ABRT $$", ("--planted",)),
        (told(fault="it raised RuntimeError: Invalid device store"), ("--planted",)),
    ],
)
def test_a_device_that_answers_or_stops_as_it_must(body: str, given: tuple[str, ...], device: Device) -> None:
    assert device.asked(body, *given) == 0


def test_one_value_that_is_wrong_is_seen(canary: ModuleType) -> None:
    seeds = [(i * 2654435761) % 2**32 for i in range(canary.THREADS)]
    want = canary.expected(seeds, 3)
    assert canary.compared(list(want), want, 3) == ""
    assert len({canary.expected(seeds, number)[0][0] for number in range(canary.ROUNDS)}) == canary.ROUNDS
    for part, name in enumerate(canary.OUTPUTS):
        for place in (0, 31, 32, 63, 64, 255):
            got = [list(column) for column in want]
            got[part][place] += 1
            assert f"{name}[{place}] = " in canary.compared(got, want, 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_known_of_halves_is_exact_in_them(dtype: str, canary: ModuleType) -> None:
    made = {kind: name for name, kind in canary.OUTPUTS.items()}
    for number in range(canary.ROUNDS):
        seeds = [(i * 2654435761) % 2**32 for i in range(canary.THREADS)]
        column = np.array(canary.expected(seeds, number)[list(canary.OUTPUTS).index(made[dtype])])
        assert np.array_equal(column.astype(getattr(ml_dtypes, dtype, dtype)).astype(np.float64), column)
        assert len(set(column.tolist())) > 60
