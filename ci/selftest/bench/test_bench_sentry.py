"""The sentry alone: what it says of a process in which something was replaced, started or hooked up."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROLOGUE = """
import gc, signal, subprocess, sys, threading, time
import mlx.core as mx
from mlx_assay.conformance.bench import queue, sentry
from mlx_assay.impl import executors
watching = sentry.Sentry(sentry.Streams())
"""
EPILOGUE = """
print([alarm.trick for alarm in watching.alarms()])
"""
DEEDS = {
    "": [],
    "mx.eval(mx.argmax(mx.ones((3, 4)), axis=-1)); gc.collect()": [],
    "import numpy as np; np.random.default_rng(3); sys.setswitchinterval(0.01)": [],
    "stream = mx.new_stream(mx.cpu); mx.eval(mx.add(mx.ones(3), 1, stream=stream))": [],
    "stream = mx.new_thread_local_stream(mx.cpu)": [],
    "time.perf_counter = time.monotonic": ["patched"],
    "mx.array.tolist = lambda self: [0]": ["patched"],
    "mx.fast.metal_kernel = executors.metal_kernel": ["patched"],
    "queue.digests = None": ["patched"],
    "queue.digests.__code__ = (lambda bits, drawn: ([], 0)).__code__": ["patched"],
    "queue.OnDevice.__call__ = lambda self, words, key: (0, 0)": ["patched"],
    "queue.on_device._host = lambda words, key: (0, 0)": ["patched"],
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()": ["threads"],
    "process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)": ["processes"],
    "gc.callbacks.append(lambda phase, info: None)": ["hooks"],
    "sys.setprofile(lambda *event: None)": ["hooks"],
    "signal.signal(signal.SIGALRM, lambda *signal: None)": ["hooks"],
    "signal.setitimer(signal.ITIMER_VIRTUAL, 60, 60)": ["hooks"],
    "[cell.cell_contents for cell in mx.new_stream.__closure__ if callable(cell.cell_contents)][0](mx.cpu)": [
        "side-stream"
    ],
}


@pytest.mark.parametrize("deed", DEEDS)
def test_what_it_says(deed: str) -> None:
    code = f"{PROLOGUE}{deed}{EPILOGUE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(DEEDS[deed])
