"""The table of docs/cuda.md from a run's document: python ci/sanitize/table.py ci/sanitize/record.json

python ci/sanitize/table.py --keep OUT.json ci/sanitize/record.json    # the run's document, cut to what is told
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def kept(document: dict[str, Any]) -> dict[str, Any]:
    """Of a run's document the machine, and of each fault its kinds and who found it or was ended by it."""
    faults = {}
    for name, told in sorted(document["faults"].items()):
        said = document["faulty"].get(name)
        found = [tool for tool in TOOLS if said and said.get(tool, {}).get("reports")]
        raised = next((what["raised"] for what in (said or {}).values() if what["raised"]), "")
        faults[name] = told | {"ran": said is not None, "found": found, "raised": "" if found else raised}
    tools = sorted({tool for said in document["faulty"].values() for tool in said})
    return {"machine": document["machine"], "tools": tools, "faults": faults}


def rows(record: dict[str, Any]) -> list[str]:
    """Lines of Markdown: a row a kind of fault, and a row of sums."""
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for fault in record["faults"].values():
        by_kind[", ".join(fault["kinds"])].append(fault)
    lines = [
        f"| kind of fault | planted | the checker | {' | '.join(TOOLS)} | refused or without end |",
        f"|---|---|---|{'---|' * len(TOOLS)}---|",
    ]
    for kind, faults in [*sorted(by_kind.items()), ("together", list(record["faults"].values()))]:
        cells = [str(len(faults)), str(sum(fault["checker"] for fault in faults))]
        for tool in TOOLS:
            cells.append(str(sum(tool in f["found"] for f in faults)) if tool in record["tools"] else "not run")
        cells.append(str(sum(bool(f["raised"]) or not f["ran"] for f in faults)))
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return lines


def main(arguments: list[str]) -> None:
    """Prints the table, or writes the record."""
    if arguments[0] == "--keep":
        record = kept(json.loads(Path(arguments[1]).read_text()))
        Path(arguments[2]).write_text(json.dumps(record, indent=1) + "\n")
        return
    print("\n".join(rows(json.loads(Path(arguments[0]).read_text()))))


if __name__ == "__main__":
    main(sys.argv[1:])
