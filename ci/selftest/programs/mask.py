"""A right program from outside in plain Python: apply_token_bitmask on encodings, by the standard library alone.

The programs of faults.py start from it.
"""

import json
import struct
import sys

INFINITY = {"BF16": 0x7F80, "F16": 0x7C00, "F32": 0x7F800000}
WIDTH = {"BF16": 2, "F16": 2, "F32": 4}
WORD = {2: "H", 4: "I"}


def read(path):
    """Tensors of a safetensors file: dtype, shape and bytes, by name."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])]) for name, one in header.items()}


def packed(tensors):
    """A safetensors file of dtypes, shapes and bytes by name."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def write(path, tensors):
    with open(path, "wb") as file:
        file.write(packed(tensors))


def plus_zero(word, dtype, sign):
    """-0 + 0 is +0; every other encoding stays."""
    return 0 if word == sign else word


def plus_lowest(word, dtype, sign):
    """Plus -inf: NaN stays, +inf becomes NaN, anything else -inf."""
    infinity = INFINITY[dtype]
    if word & ~sign > infinity:
        return word
    return infinity | infinity >> 1 if word == infinity else infinity | sign


def masked(tensors):
    """The logits, as the mask's words allow them."""
    if "bits" not in tensors or tensors["bits"][0] != "I32":
        raise TypeError("Expected int32 words")
    if "logits" not in tensors or tensors["logits"][0] not in WIDTH:
        raise TypeError("Expected floating-point logits")
    if len(tensors["bits"][1]) != 1:
        raise ValueError("Expected one mask for every row")
    dtype, shape, data = tensors["logits"]
    width = WIDTH[dtype]
    if not shape or not data:
        raise ValueError("Expected logits with elements")
    count, sign, vocabulary = len(data) // width, 1 << 8 * width - 1, shape[-1]
    words = struct.unpack(f"<{len(tensors['bits'][2]) // 4}I", tensors["bits"][2])
    allowed = [i >> 5 < len(words) and words[i >> 5] >> (i & 31) & 1 for i in range(vocabulary)]
    logits = struct.unpack(f"<{count}{WORD[width]}", data)
    made = [(plus_zero if allowed[i % vocabulary] else plus_lowest)(word, dtype, sign) for i, word in enumerate(logits)]
    return dtype, shape, struct.pack(f"<{count}{WORD[width]}", *made)


def started(executor):
    """Who this is; `executor` is what the suite says of its machine."""
    return {
        "protocol": 1,
        "name": "mask",
        "version": "1.0",
        "runtime": f"Python {sys.version_info[0]}",
        "device": "cpu",
        "operations": ["apply_token_bitmask", "echo"],
    }


def answered(order):
    """Does what is asked for; what to answer."""
    tensors = read(order["in"])
    try:
        if order["operation"] == "echo":
            (output,) = tensors.values()
        elif order["operation"] == "apply_token_bitmask":
            output = masked(tensors)
        else:
            return {"seq": order["seq"], "unsupported": f"no operation {order['operation']}"}
    except (TypeError, ValueError) as error:
        return {"seq": order["seq"], "error": str(error), "type": type(error).__name__}
    write(order["out"], {"out": output})
    return {"seq": order["seq"], "ok": True}


def say(answer):
    print(json.dumps(answer), flush=True)


def main(answer=answered, start=started):
    """Serves until it is told to stop, or nobody is there any more."""
    for line in sys.stdin:
        order = json.loads(line)
        if order["cmd"] == "stop":
            return
        if order["cmd"] == "start":
            say(start(order["executor"]))
        elif order["cmd"] == "run":
            say(answer(order))
        else:
            raise SystemExit(f"unknown order {order['cmd']}")


if __name__ == "__main__":
    main()
