"""A contract in words, as reports and bundles hold it."""

from __future__ import annotations

from mlx_assay.conformance.contract import Contract
from mlx_assay.conformance.reporting.report import ContractRecord


def promised(contract: Contract) -> ContractRecord:
    """Summary, rules by number, relaxations."""
    return ContractRecord(
        summary=contract.summary,
        rules={str(rule.number): rule.text for rule in contract.rules},
        relaxations=list(contract.relaxations),
    )
