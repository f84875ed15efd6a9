"""A program from outside that is wrong in one way: the fault that the file named on its command line holds, if any."""

import json
import os
import signal
import subprocess
import sys
import time

import mask

FIRST = {}


def wait():
    while True:
        time.sleep(60)


def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def output(tensors):
    """A right answer with a wrong file."""

    def answer(order):
        right = mask.masked(mask.read(order["in"]))
        mask.write(order["out"], tensors(*right))
        return {"seq": order["seq"], "ok": True}

    return answer


def file(data):
    """A right answer with a file that is no safetensors file of one tensor."""

    def answer(order):
        right = mask.packed({"out": mask.masked(mask.read(order["in"]))})
        with open(order["out"], "wb") as file:
            file.write(data(right))
        return {"seq": order["seq"], "ok": True}

    return answer


def place(make):
    """A right file, and in the place of `out` something that leads to it."""

    def answer(order):
        hidden = order["out"] + "-hidden"
        mask.write(hidden, {"out": mask.masked(mask.read(order["in"]))})
        make(hidden, order["out"])
        return {"seq": order["seq"], "ok": True}

    return answer


def reply(change):
    """A right file with another answer: `change` gives JSON, or the bytes of the line."""

    def answer(order):
        told = change(mask.answered(order))
        raw(told if isinstance(told, bytes) else json.dumps(told).encode() + b"\n")

    return answer


def act(deed):
    """Something else than an answer."""
    return lambda order: deed()


def sparse(size):
    def make(hidden, out):
        with open(out, "wb") as file:
            file.truncate(size)

    return make


def folder_moved(hidden, out):
    folder = os.path.dirname(out)
    os.rename(folder, folder + "-moved")
    os.symlink("/etc", folder)


def stale(order):
    """The first output of its size again."""
    right = mask.masked(mask.read(order["in"]))
    kept = FIRST.setdefault((right[0], *right[1]), right)
    mask.write(order["out"], {"out": kept})
    return {"seq": order["seq"], "ok": True}


def right_once(order):
    """Right, and one bit off where the same comes again."""
    right = mask.masked(mask.read(order["in"]))
    again = FIRST.setdefault(right[2], order["seq"]) != order["seq"]
    data = bytes([right[2][0] ^ again]) + right[2][1:]
    mask.write(order["out"], {"out": (*right[:2], data)})
    return {"seq": order["seq"], "ok": True}


def starts(**options):
    """Right, and a process is left behind that holds every pipe."""

    def answer(order):
        if not FIRST:
            left = subprocess.Popen(["sleep", "600"], close_fds=False, **options)
            FIRST["left"] = left
            with open(sys.argv[1] + ".left", "w") as file:
                file.write(str(left.pid))
        return mask.answered(order)

    return answer


def says(words):
    def answer(order):
        print(words, file=sys.stderr, flush=True)
        return mask.answered(order)

    return answer


def ends(words, deed):
    def answer(order):
        print(words, file=sys.stderr, flush=True)
        deed()

    return answer


def hang_on():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wait()


def hang_after(data):
    raw(data)
    wait()


def leave_after(data):
    raw(data)
    os._exit(0)


def flood():
    while True:
        raw(b"x" * 65536)


FAULTS = {
    # What lies in the place of the output.
    "nothing": lambda order: {"seq": order["seq"], "ok": True},
    "elsewhere": place(lambda hidden, out: None),
    "symbolic-link": place(os.symlink),
    "hard-link": place(os.link),
    "pipe": place(lambda hidden, out: os.mkfifo(out)),
    "folder": place(lambda hidden, out: os.mkdir(out)),
    "sparse-gigabytes": place(sparse(1 << 31)),
    "sparse-terabyte": place(sparse(1 << 40)),
    "folder-replaced": place(folder_moved),
    # What stands in the file.
    "empty-file": file(lambda right: b""),
    "text-file": file(lambda right: b"the answer is 42"),
    "truncated-file": file(lambda right: right[:-1]),
    "trailing-bytes": file(lambda right: right + b"\0"),
    "header-beyond-file": file(lambda right: b"\xff" * 8 + right[8:]),
    "no-tensor": output(lambda *right: {}),
    "two-tensors": output(lambda *right: {"out": right, "more": right}),
    "unknown-dtype": output(lambda dtype, shape, data: {"out": ("F8_E4M3", [len(data)], data)}),
    "impossible-shape": output(lambda dtype, shape, data: {"out": (dtype, [1 << 40, 1 << 40], data)}),
    "wrong-dtype": output(lambda dtype, shape, data: {"out": ("U8", [len(data)], data)}),
    "wrong-shape": output(lambda dtype, shape, data: {"out": (dtype, [1, *shape], data)}),
    "too-large": output(lambda dtype, shape, data: {"out": ("U8", [1 << 20], bytes(1 << 20))}),
    "swapped-bytes": output(lambda dtype, shape, data: {"out": (dtype, shape, data[::-1])}),
    "zeros": output(lambda dtype, shape, data: {"out": (dtype, shape, bytes(len(data)))}),
    "stale": stale,
    "right-once": right_once,
    # What is said.
    "other-number": reply(lambda told: {**told, "seq": told["seq"] + 1}),
    "number-as-text": reply(lambda told: {**told, "seq": str(told["seq"])}),
    "number-as-float": reply(lambda told: b'{"seq":%d.5,"ok":true}\n' % told["seq"]),
    "no-number": reply(lambda told: {"ok": True}),
    "not-json": reply(lambda told: b"done\n"),
    "json-array": reply(lambda told: [told]),
    "nan-in-json": reply(lambda told: b'{"seq":NaN,"ok":true}\n'),
    "unknown-field": reply(lambda told: {**told, "output": "elsewhere"}),
    "two-answers": reply(lambda told: {**told, "error": "and yet"}),
    "no-answer": reply(lambda told: {"seq": told["seq"]}),
    "ok-false": reply(lambda told: {**told, "ok": False}),
    "unknown-type": reply(lambda told: {"seq": told["seq"], "error": "no", "type": "KeyError"}),
    "nested-deep": reply(lambda told: b'{"seq":%d,"plan":%s}\n' % (told["seq"], b"[" * 100_000 + b"]" * 100_000)),
    "plan-unannounced": reply(lambda told: {"seq": told["seq"], "plan": {}}),
    "noise-before": reply(lambda told: b"loading the model\n" + json.dumps(told).encode() + b"\n"),
    "noise-behind": reply(lambda told: json.dumps(told).encode() + b"\nready\n"),
    "said-twice": reply(lambda told: 2 * (json.dumps(told).encode() + b"\n")),
    "escape-sequences": reply(lambda told: b"\x1b]0;owned\x07\x1b[2J\xff\xfe\n"),
    "long-line": reply(lambda told: b"[" + b"1," * (1 << 20) + b"1]\n"),
    "flood": act(flood),
    # How it ends, or does not.
    "exits": act(lambda: os._exit(0)),
    "exits-with-7": ends("cannot open the device", lambda: os._exit(7)),
    "segfault": act(lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "half-a-line": act(lambda: leave_after(b'{"seq":')),
    "closes-output": act(lambda: (os.close(1), wait())),
    "hangs": ends("thinking", wait),
    "hangs-on": act(hang_on),
    "hangs-in-a-line": act(lambda: hang_after(b'{"seq":')),
    # What is allowed to come, and does not conform.
    "unsupported": lambda order: {"seq": order["seq"], "unsupported": "no such kernel on this device"},
    "fails": lambda order: {"seq": order["seq"], "error": "out of memory"},
    "fails-by-value": lambda order: {"seq": order["seq"], "error": "not this", "type": "ValueError"},
    # What is odd, and no fault.
    "talks": says("a word on standard error"),
    "talks-much": says("much " * 100_000),
    "leaves-a-process": starts(),
    "leaves-a-session": starts(start_new_session=True),
    "forbids-its-folder": place(lambda hidden, out: (os.rename(hidden, out), os.mkdir(hidden), os.chmod(hidden, 0))),
}


def answer(order):
    with open(sys.argv[1]) as file:
        name = file.read()
    return FAULTS[name](order) if name else mask.answered(order)


def say(told):
    if told is not None:
        mask.say(told)


if __name__ == "__main__":
    for line in sys.stdin:
        order = json.loads(line)
        if order["cmd"] == "stop":
            break
        say(mask.started({}) if order["cmd"] == "start" else answer(order))
