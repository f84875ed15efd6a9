"""What SARIF 2.1.0's own schema says of the objects that logs of this project use, written down anew."""

from __future__ import annotations

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "message": MESSAGE,
        "logicalLocations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "fullyQualifiedName": {"type": "string"},
                    "kind": {"const": "function"},
                },
            },
        },
        "physicalLocation": {
            "type": "object",
            "anyOf": [{"required": ["artifactLocation"]}],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "properties": {
                        "uri": {"type": "string", "pattern": r"^(file:///)?[\w./%~-]+$"},
                        "uriBaseId": {"type": "string"},
                    },
                    "additionalProperties": False,
                },
                "region": {
                    "type": "object",
                    "properties": {
                        **{
                            name: {"type": "integer", "minimum": 1}
                            for name in ("startLine", "startColumn", "endColumn")
                        },
                        "snippet": {"type": "object", "properties": {"text": {"type": "string"}}},
                    },
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
RULE = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": {**MESSAGE, "properties": {**MESSAGE["properties"], "markdown": {"type": "string"}}},  # type: ignore[dict-item]
        "defaultConfiguration": {"properties": {"level": {"enum": ["none", "note", "warning", "error"]}}},
    },
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "relatedLocations": {"type": "array", "items": LOCATION, "uniqueItems": True},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "occurrenceCount": {"type": "integer", "minimum": 1},
        "properties": {"type": "object"},
    },
    "additionalProperties": False,
}
NOTIFICATION = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "descriptor": {"type": "object", "required": ["id"]},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
    },
    "additionalProperties": False,
}
INVOCATION = {
    "type": "object",
    "required": ["executionSuccessful"],
    "properties": {
        "executionSuccessful": {"type": "boolean"},
        "startTimeUtc": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
        "exitCode": {"type": "integer"},
        "arguments": {"type": "array", "items": {"type": "string"}},
        "toolExecutionNotifications": {"type": "array", "items": NOTIFICATION, "uniqueItems": True},
    },
    "additionalProperties": False,
}
RUN = {
    "type": "object",
    "required": ["tool"],
    "properties": {
        "tool": {
            "type": "object",
            "required": ["driver"],
            "properties": {
                "driver": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"rules": {"type": "array", "items": RULE, "uniqueItems": True}},
                }
            },
        },
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "invocations": {"type": "array", "items": INVOCATION},
        "results": {"type": "array", "items": RESULT},
        "properties": {"type": "object"},
    },
    "additionalProperties": False,
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    },
    "additionalProperties": False,
}
"""What SARIF's own schema says of the objects that are used here, each property by its name there."""
