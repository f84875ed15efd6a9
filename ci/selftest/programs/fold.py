"""A right program from outside with NumPy: trellis_fold, in the order of a SIMD group that it is told of."""

import platform

import mask
import ml_dtypes
import numpy as np

FLOATS = {"bfloat16": ("BF16", ml_dtypes.bfloat16), "float16": ("F16", np.float16), "float32": ("F32", np.float32)}
MACHINE = {}


def added(a, b):
    total = a + b
    if MACHINE["f32_denormals"] == "flushed":
        total = np.where(np.abs(total) < np.float32(2.0**-126), np.copysign(np.float32(0), total), total)
    return total


def folded(partial, output):
    """float32 [1, 128, cols] -> [1, cols]."""
    if MACHINE["f32_denormals"] == "flushed":
        partial = added(partial, np.float32(-0.0))
    lanes = added(np.float32(0), partial[0, :32])
    for start in (32, 64, 96):
        lanes = added(lanes, partial[0, start : start + 32])
    if MACHINE["simd_sum"] == "ascending-butterfly":
        while len(lanes) > 1:
            lanes = added(lanes[::2], lanes[1::2])
    elif MACHINE["simd_sum"] == "descending-butterfly":
        while len(lanes) > 1:
            lanes = added(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
    else:
        raise NotImplementedError(MACHINE["simd_sum"])
    return lanes.astype(FLOATS[output][1])


def answered(order):
    dtype, shape, data = mask.read(order["in"]).get("partial", ("", [], b""))
    if dtype != "F32" or len(shape) != 3 or shape[:2] != [1, 128]:
        return {"seq": order["seq"], "error": f"Expected float32 [1, 128, cols] but got {shape}", "type": "ValueError"}
    output = order["parameters"]["output_dtype"].get("value")
    if output not in FLOATS:
        return {"seq": order["seq"], "error": f"Expected a float dtype's name but got {output}", "type": "ValueError"}
    with np.errstate(all="ignore"):
        partial = np.frombuffer(data, np.float32).reshape(shape)
        try:
            sums = folded(partial, output)
        except NotImplementedError as error:
            return {"seq": order["seq"], "unsupported": f"the order {error} of a SIMD group"}
    mask.write(order["out"], {"out": (FLOATS[output][0], list(sums.shape), sums.tobytes())})
    return {"seq": order["seq"], "ok": True}


def started(executor):
    MACHINE.update(executor)
    runtime = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return {**mask.started(executor), "name": "fold", "runtime": runtime, "operations": ["trellis_fold"]}


if __name__ == "__main__":
    mask.main(answered, started)
