"""The same kernels as a program: `mlx-assay run --implementation 'cmd: python adapter.py'`.

docs/adapters.md describes the protocol. The program needs nothing of mlx-assay; whatever Python and MLX it runs with
are its own, so a package can be judged in an environment apart.
"""

import json
import os
import platform
import struct
import sys
from importlib.metadata import version

import foreign_kernels
import mlx.core as mx

OPERATIONS = {name: getattr(foreign_kernels, name) for name in ("apply_token_bitmask", "compiled_logit_softcap")}


def start():
    """Who this is."""
    return {
        "protocol": 1,
        "name": "mlx-assay-example-foreign",
        "version": "0.1.0",
        "runtime": f"python {platform.python_version()}",
        "device": str(mx.default_device()),
        "mlx": version("mlx"),
        "operations": list(OPERATIONS),
    }


def run(order):
    """One call: arrays come by a file and go by another."""
    if order["operation"] not in OPERATIONS:
        return {"unsupported": f"no operation {order['operation']}"}
    try:
        tensors = mx.load(order["in"])
    except RuntimeError as error:
        # A dtype that MLX does not read is one that no kernel takes.
        return {"error": str(error), "type": "TypeError"}
    arguments = [plain(one, tensors.get(name)) for name, one in order["parameters"].items()]
    try:
        result = OPERATIONS[order["operation"]](*arguments)
        mx.save_safetensors(order["out"], {"out": result})
    except NotImplementedError as error:
        return {"unsupported": str(error)}
    except Exception as error:
        kind = type(error).__name__
        named = {"type": kind} if kind in ("ValueError", "TypeError", "IndexError") else {}
        return {"error": str(error) or kind, **named}
    return {"ok": True}


def plain(value, tensor):
    """An argument: floats are spelled as their bits, since JSON has no NaN and no infinities."""
    match value["is"]:
        case "tensor":
            return tensor
        case "float":
            return struct.unpack(">d", bytes.fromhex(value["bits"][2:]))[0]
        case "none":
            return None
    return value["value"]


def main():
    """Answers line by line. Whatever a package prints goes to standard error: standard output is the protocol's."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        if order["cmd"] == "stop":
            break
        answer = start() if order["cmd"] == "start" else {"seq": order["seq"], **run(order)}
        print(json.dumps(answer), file=answers, flush=True)


main()
