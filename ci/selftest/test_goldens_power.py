"""Each group of goldens has power: a plausible mistake in its oracle shows in `fixtures check`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlx_assay.conformance.regeneration.holding import hold
from mlx_assay.fixtures.encoding import bits_of
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.oracles.registry import load

Mistake = Callable[[Callable[..., Any]], Callable[..., Any]]


def last_wins(sound: Callable[..., Any]) -> Callable[..., Any]:
    def winners(values: np.ndarray, nan_rule: str) -> np.ndarray:
        ids: np.ndarray = sound(values[..., ::-1], nan_rule)
        return (values.shape[-1] - 1 - ids.astype(np.int64)).astype(np.uint32)

    return winners


def first_nan_wins(sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, nan_rule: sound(values, "first")


def bits_reversed(sound: Callable[..., Any]) -> Callable[..., Any]:
    def allowed(bits: np.ndarray, vocabulary: int) -> np.ndarray:
        flags: np.ndarray = sound(bits, -(-vocabulary // 32) * 32)
        return flags.reshape(-1, 32)[:, ::-1].reshape(-1)[:vocabulary]

    return allowed


def written_over(sound: Callable[..., Any]) -> Callable[..., Any]:
    """-inf over rejected logits in place of a sum: NaN, +inf and -0 come out otherwise."""
    allowed = load("numpy_reference").allowed
    return lambda logits, bits: np.where(allowed(bits, logits.shape[-1]), logits, np.array(-np.inf, logits.dtype))


def tanh_in_float32(sound: Callable[..., Any]) -> Callable[..., Any]:
    """Wrong by an ulp here and there, in float32 alone."""

    def tanh(values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            bent = np.tanh(values.astype(np.float32))
            return np.asarray(np.nextafter(bent, np.float32(2)) if values.dtype == np.float32 else bent).astype(
                values.dtype
            )

    return tanh


def scores_truncated(sound: Callable[..., Any]) -> Callable[..., Any]:
    def scores(logits: np.ndarray, lse: np.ndarray) -> np.ndarray:
        near: np.ndarray = sound(logits, lse)
        exact = logits.astype(np.float32) - lse.astype(np.float32)
        away = np.abs(near.astype(np.float32)) > np.abs(exact)
        return np.asarray((bits_of(near) - away).astype(bits_of(near).dtype).view(near.dtype))

    return scores


def unrefined_for_exact(sound: Callable[..., Any]) -> Callable[..., Any]:
    return load("host_lut").unrefined  # type: ignore[no-any-return]


def variant_of_others(sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda packed, scales, variant=13, form=None, **more: sound(
        packed, scales, 5 if variant == 0 else variant, form, **more
    )


def descending(sound: Callable[..., Any]) -> Callable[..., Any]:
    other = {"ascending-butterfly": "descending-butterfly", "descending-butterfly": "ascending-butterfly"}
    return lambda partial, dtype, order, flush=False: sound(partial, dtype, other[order], flush)


def rounded_twice(sound: Callable[..., Any]) -> Callable[..., Any]:
    def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, flush: bool = False) -> np.ndarray:
        return np.asarray(np.float32(a) * np.float32(b) + np.float32(c), np.float32)

    return fma


def unrefined_for_refined(sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda sums, form: sound(sums, "unrefined" if form == "refined" else form)


FAULTS: tuple[tuple[str, str, str, Mistake], ...] = (
    ("argmax_given", "numpy_reference", "winners", last_wins),
    ("argmax_given", "numpy_reference", "scores", scores_truncated),
    ("argmax_given_nan_skipped", "numpy_reference", "winners", first_nan_wins),
    ("apply_token_bitmask", "numpy_reference", "allowed", bits_reversed),
    ("apply_token_bitmask", "numpy_reference", "apply_token_bitmask", written_over),
    ("logit_softcap", "precise_softcap", "tanh", tanh_in_float32),
    ("trellis_code_values", "trellis_decode", "trellis_code_values", unrefined_for_refined),
    ("trellis_decode", "trellis_decode", "trellis_decode", variant_of_others),
    ("trellis_decode_wide", "trellis_decode", "trellis_decode", variant_of_others),
    ("trellis_fold_ascending", "trellis_row", "trellis_fold", descending),
    ("trellis_fold_descending", "trellis_row", "trellis_fold", descending),
    ("down_codebook_row", "trellis_row", "fma", rounded_twice),
    ("softcap_streams", "precise_softcap", "tanh", tanh_in_float32),
    ("mask_streams", "numpy_reference", "apply_token_bitmask", written_over),
    ("score_streams", "numpy_reference", "scores", scores_truncated),
    ("codebook_streams", "host_lut", "exact", unrefined_for_exact),
)


@pytest.mark.parametrize(
    ("name", "oracle", "attribute", "mistake"), FAULTS, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_mistake_in_an_oracle_is_an_oracle_fault(
    name: str, oracle: str, attribute: str, mistake: Mistake, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(oracle)
    monkeypatch.setattr(
        "mlx_assay.conformance.regeneration.holding.release", lambda group: "its self-test is not asked here"
    )
    monkeypatch.setattr(module, attribute, mistake(getattr(module, attribute)))
    held = hold(groups()[name])
    assert held.state == "fault"
    assert any("oracle fault" in line for line in held.lines), held.lines[:3]


def test_every_exact_group_is_seen_to_fail() -> None:
    exact = {name for name, group in groups().items() if group.scope == "exact"}
    assert {name for name, *_ in FAULTS} == exact
