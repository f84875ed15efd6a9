"""One thing changed in a sound report: the gate stays shut, unless what changed is listed here as of no consequence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sound import COMMIT, NOW, POLICY, QUERY, document, ids, report

from mlx_assay.conformance.gating.decision import decide
from mlx_assay.conformance.gating.presence import moment
from mlx_assay.conformance.gating.reading import PolicyFile, load
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.reporting.report import ContractRecord, decode
from mlx_assay.conformance.verdict import Verdict

ASKED = "trellis_fold/float16"
WAIVED = ids([ASKED])[2]
WAIVER = f"""
[[waivers]]
query = "{WAIVED}"
reason = "known since June"
issue = "https://example.org/issues/1"
expect = "differs"
until = 2026-06-30
"""
SOUND = document(
    report(
        queries=[ASKED],
        verdicts={WAIVED: Verdict.DIFFERS},
        contracts={"trellis_fold": ContractRecord(summary="a sum", rules={"1": "in order"}, relaxations=["nan-any"])},
    )
)
HARMLESS = re.compile(
    r"\$\.("
    r"run|started|seconds"
    r"|environment\.(python|platform|graph_compiler|device|packages\.(?!mlx$).+|oracles\.[a-z-]+\.(version|reason)|oracles\..*2)"
    r"|implementation\.operations(\.\d+)?"  # those of which there is no case
    r"|executor\.details(\.[a-z_0-9]+)?"
    r"|contracts(\.trellis_fold(\..+)?)?"
    r"|cases\.\d+\.(seconds|subcases|launches|relaxations)"
    r"|cases\.2\.(message|output|tensors|tensors_sha256|difference(\..+)?)"  # the waived case
    r")"
)
"""Fields on which no verdict rests: free text, durations, and what a policy may ask for but this one does not."""

PLAIN = msgspec.to_builtins(decode(json.dumps(SOUND).encode()))

SETTINGS = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything in a document, containers included."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))


def shown(path: tuple[Any, ...]) -> str:
    return ".".join(["$", *map(str, path)])


def changes(old: Any, new: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths at which two documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            yield from changes(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from changes(left, right, (*path, place))
    elif type(old) is not type(new) or old != new:
        yield path


def harmful(content: bytes) -> list[str]:
    """What a report says otherwise than the sound one, as readers of reports see it, beyond HARMLESS."""
    found = changes(PLAIN, msgspec.to_builtins(decode(content)))
    return [shown(path) for path in found if not HARMLESS.fullmatch(shown(path))]


PATHS = list(leaves(SOUND))
VALUES = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 29, 30, 2**63, 2**64, 0.5, -0.5, 1e300, "", "x", [], {}, [1], "ok"]),
    st.sampled_from([verdict.value for verdict in Verdict]),
    st.text(max_size=8),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite()


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> PolicyFile:
    path = tmp_path_factory.mktemp("policy") / "gate.toml"
    path.write_text(POLICY.replace(QUERY, ASKED).replace("cases = 20", "cases = 5") + WAIVER)
    return load(str(path))


def opens(content: bytes, folder: Path, policy: PolicyFile, suite: Suite) -> bool:
    """Whether the gate opens for a report of these bytes."""
    path = folder / "report.json"
    path.write_bytes(content)
    return decide(policy, [str(path)], moment(NOW), COMMIT, suite=suite).verdict == "conforms"


def test_the_report_is_sound(tmp_path: Path, policy: PolicyFile, suite: Suite) -> None:
    assert opens(json.dumps(SOUND).encode(), tmp_path, policy, suite)


@SETTINGS
@given(path=st.sampled_from(PATHS), value=VALUES, action=st.sampled_from(["set", "set", "set", "drop", "twice"]))
def test_a_changed_value(
    tmp_path: Path, policy: PolicyFile, suite: Suite, path: tuple[Any, ...], value: Any, action: str
) -> None:
    changed = json.loads(json.dumps(SOUND))
    *above, last = path
    holder = changed
    for step in above:
        holder = holder[step]
    if action == "set":
        holder[last] = value
    elif action == "drop":
        del holder[last]
    elif isinstance(holder, list):
        holder.insert(last, holder[last])
    else:
        holder[f"{last}2"] = holder[last]
    content = json.dumps(changed).encode()
    if opens(content, tmp_path, policy, suite):
        assert harmful(content) == []


@SETTINGS
@given(place=st.integers(0, 2**20), byte=st.integers(0, 255), action=st.sampled_from(["set", "drop", "insert"]))
def test_a_changed_byte(tmp_path: Path, policy: PolicyFile, suite: Suite, place: int, byte: int, action: str) -> None:
    whole = json.dumps(SOUND).encode()
    place %= len(whole)
    between = b"" if action == "drop" else bytes([byte])
    changed = whole[:place] + between + whole[place + (action != "insert") :]
    if opens(changed, tmp_path, policy, suite):
        assert harmful(changed) == []
