"""Stages: where the time of a run went, summed over its processes, and told as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mlx_assay.conformance.process.account import IMPLEMENTATION
from mlx_assay.conformance.reporting.report import Stage

PROCESSES = ("command", "judge", "implementation")
AT_REST = frozenset({"idle", "waiting"})
"""Stages in which a process waits for the other one."""
OUTSIDE = frozenset({"start"})
"""Stages that belong to no case, though a case's account holds them."""
MOST = 3
"""Stages of an operation that are named."""

Key = tuple[str, str, str]


class Tally:
    """Sums by process, stage and operation."""

    def __init__(self) -> None:
        self._sums: dict[Key, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])

    def add(self, operation: str, spent: Mapping[str, tuple[int, float, float]], process: str = "judge") -> None:
        """Takes an account; of a judge's, what its implementation's process told stands under that one."""
        for name, numbers in spent.items():
            theirs = name.startswith(IMPLEMENTATION)
            stage = name.removeprefix(IMPLEMENTATION)
            key = ("implementation" if theirs else process, stage, "" if stage in OUTSIDE else operation)
            sums = self._sums[key]
            for place, number in enumerate(numbers):
                sums[place] += number

    def join(self, stages: Iterable[Stage]) -> None:
        """Takes those of another report."""
        for one in stages:
            sums = self._sums[one.process, one.stage, one.operation]
            for place, number in enumerate((one.count, one.cpu, one.wall)):
                sums[place] += number

    def stages(self) -> list[Stage]:
        """All sums, by process, stage and operation; those of nothing left out."""
        return [
            Stage(
                process=process,
                stage=stage,
                operation=operation,
                count=int(count),
                cpu=round(cpu, 4),
                wall=round(wall, 4),
            )
            for (process, stage, operation), (count, cpu, wall) in sorted(self._sums.items())
            if count or cpu or wall
        ]


def table(stages: Sequence[Stage], all_cpu: float, wall: float) -> list[str]:
    """Lines of plain text: every stage of each process, then what took most for each operation.

    `all_cpu` are the CPU seconds of all processes, those that nobody counted included, or 0; `wall` is how long the run
    took.
    """
    if not stages:
        return []
    return [*_by_stage(stages, all_cpu, wall), *_by_operation(stages)]


def _by_stage(stages: Sequence[Stage], all_cpu: float, wall_of_all: float) -> list[str]:
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for one in stages:
        for place, number in enumerate((one.count, one.cpu, one.wall)):
            sums[one.process, one.stage][place] += number
    counted = sum(cpu for _, cpu, _ in sums.values())
    whole = max(all_cpu, counted) or 1.0
    lines = [f"{'process':<16}{'stage':<28}{'count':>10}{'CPU s':>10}{'share':>8}{'wall s':>10}"]
    for process in PROCESSES:
        rows = {stage: numbers for (name, stage), numbers in sums.items() if name == process}
        for stage in sorted(rows, key=lambda stage: (stage in AT_REST, -rows[stage][1])):
            count, cpu, wall = rows[stage]
            lines.append(f"{process:<16}{stage:<28}{count:>10.0f}{cpu:>10.2f}{100 * cpu / whole:>7.1f}%{wall:>10.2f}")
    if all_cpu > counted:
        rest = all_cpu - counted
        lines.append(f"{'not counted':<54}{rest:>10.2f}{100 * rest / whole:>7.1f}%")
    return [*lines, f"{'all':<54}{whole:>10.2f}{100:>7.1f}%{wall_of_all:>10.2f}"]


def _by_operation(stages: Sequence[Stage]) -> list[str]:
    cases: dict[str, int] = defaultdict(int)
    costs: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in stages:
        if one.operation:
            title = one.stage if one.process == "judge" else f"{one.process}'s {one.stage}"
            costs[one.operation][title] += one.cpu
            cases[one.operation] += one.count if (one.process, one.stage) == ("judge", "judge") else 0
    if not costs:
        return []
    lines = ["", f"{'operation':<36}{'cases':>8}{'CPU s':>10}  the most of it"]
    for operation, spent in sorted(costs.items(), key=lambda item: -sum(item[1].values())):
        most = sorted(spent.items(), key=lambda item: -item[1])[:MOST]
        told = ", ".join(f"{name} {cpu:.2f}" for name, cpu in most)
        lines.append(f"{operation:<36}{cases[operation]:>8}{sum(spent.values()):>10.2f}  {told}")
    return lines
