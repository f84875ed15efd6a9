"""What CTRF's published JSON Schema says of the objects that are used here, written down anew, and no more."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
STATUS = {"enum": ["passed", "failed", "skipped", "pending", "other"]}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """An object of these properties and no others."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


TEST = closed(
    ["name", "status", "duration"],
    id=UUID,
    name={"type": "string", "minLength": 1},
    status=STATUS,
    duration=COUNT,
    suite={"type": "array", "minItems": 1, "items": TEXT},
    message=TEXT,
    trace=TEXT,
    rawStatus=TEXT,
    tags={"type": "array", "items": TEXT},
    type=TEXT,
    stdout={"type": "array", "items": TEXT},
    extra={"type": "object"},
)
COUNTS = ("tests", "passed", "failed", "skipped", "pending", "other", "start", "stop")
CTRF = closed(
    ["results", "reportFormat", "specVersion"],
    reportFormat={"const": "CTRF"},
    specVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    reportId=UUID,
    timestamp={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$"},
    generatedBy=TEXT,
    results=closed(
        ["tool", "summary", "tests"],
        tool=closed(["name"], name={"type": "string", "minLength": 1}, version=TEXT),
        summary=closed([*COUNTS], **dict.fromkeys((*COUNTS, "duration"), COUNT)),
        tests={"type": "array", "items": TEST},
        environment=closed(
            [],
            reportName=TEXT,
            appName=TEXT,
            commit=TEXT,
            osPlatform=TEXT,
            testEnvironment=TEXT,
            healthy={"type": "boolean"},
            extra={"type": "object"},
        ),
    ),
)
