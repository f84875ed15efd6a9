"""From the checker's findings, and the compiler's, to findings with places in files."""

from __future__ import annotations

import re

from mlx_assay.conformance.checking.places import Texts
from mlx_assay.conformance.checking.protocol import TEXT_LIMIT
from mlx_assay.conformance.checking.report import Access, Diagnostic, Location
from mlx_assay.conformance.checking.rules import COMPILE_ERROR
from mlx_assay.impl.executors.checker.finding import Finding, Place, Severity
from mlx_assay.impl.executors.signature import Definition

_REFUSED = "does not compile"
_REFUSAL = re.compile(r"^(source|header) line (\d+): (?:fatal )?error: (.*)\n {4}(.*)$", re.M)
_QUALIFIED = r"(?<![\w.:])((?:(?:metal|precise|fast)\s*::\s*)+)?"
_TRANSCENDENTAL = re.compile(
    _QUALIFIED + r"(a?(?:sin|cos|tan)h?|atan2|sincos|(?:sin|cos|tan)pi|exp(?:2|10|m1)?|log(?:2|10|1p)?|powr?|rsqrt"
    r"|erf(?:inv)?)\s*\("
)
_ACCUMULATION = re.compile(
    _QUALIFIED + r"(dot|(?:length|distance)(?:_squared)?|normalize|reflect|refract|faceforward"
    r"|simdgroup_multiply(?:_accumulate)?)\s*\("
)
_DEFINED = re.compile(r"\w[\s*&>]+(\w+)\s*\([^(){};]*\)\s*(?:const\s*)?\{")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def located(kernel: int, texts: Texts, finding: Finding, site: Location | None) -> Diagnostic:
    """A finding of the checker; `site` is the line of Python that launched the kernel."""
    accesses = [
        Access(
            how=access.how[:TEXT_LIMIT],
            location=texts.location(access.place, finding.array, access.how),
            thread=access.thread,
            threadgroup=access.threadgroup,
        )
        for access in finding.accesses
    ]
    return Diagnostic(
        kind=finding.kind.value,
        severity=finding.severity,
        kernel=kernel,
        message=finding.message[:TEXT_LIMIT],
        accesses=accesses,
        array=finding.array[:TEXT_LIMIT],
        space=finding.space,
        index=finding.index,
        offset=finding.offset,
        barrier=texts.location(finding.barrier) if finding.barrier else None,
        launch=site,
        schedule=finding.schedule,
        count=finding.count,
    )


def refusals(kernel: int, texts: Texts, error: Exception, site: Location | None) -> list[Diagnostic]:
    """The compiler's errors in what a launch raised; none where it raised for another reason."""
    message = str(error)
    if not isinstance(error, RuntimeError) or _REFUSED not in message:
        return []
    found = [(match[3], [_compiled(texts, match)]) for match in _REFUSAL.finditer(message)]
    return [
        Diagnostic(
            kind=COMPILE_ERROR,
            severity=Severity.ERROR,
            kernel=kernel,
            message=told[:TEXT_LIMIT],
            accesses=accesses,
            launch=site,
        )
        for told, accesses in found or [(message.partition("\n")[2] or message, [])]
    ]


def _compiled(texts: Texts, match: re.Match[str]) -> Access:
    return Access(how="compile", location=texts.location(Place(match[1], int(match[2]), match[4])))


def transcendentals(definition: Definition) -> list[str]:
    """Functions called in a kernel's own text whose last bits are the C library's on the host executor."""
    return _called(definition, _TRANSCENDENTAL)


def accumulations(definition: Definition) -> list[str]:
    """Functions called in a kernel's own text that add products in an order which is the host executor's choice."""
    return _called(definition, _ACCUMULATION)


def _called(definition: Definition, names: re.Pattern[str]) -> list[str]:
    """Which of the names are called; one that the text itself defines counts where it is called as Metal's."""
    text = _COMMENT.sub(" ", f"{definition.header}\n{definition.source}")
    own = {match[1] for match in _DEFINED.finditer(text)}
    return sorted({match[2] for match in names.finditer(text) if match[1] or match[2] not in own})
