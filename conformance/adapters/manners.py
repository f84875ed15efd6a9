"""The steps of an examination that look at manners: order of answers, files, strange orders, ends and new starts."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from mlx_assay.conformance.adapters.channel import EXIT_SECONDS, Broken
from mlx_assay.conformance.adapters.conversation import Arguments, Conversation
from mlx_assay.conformance.adapters.examination import Examiner
from mlx_assay.conformance.contract import contracts
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import Kind, kinds

STRANGE_OPERATION = "no_such_operation"
STRANGE_ORDER = b'{"cmd":"no-such-order"}'
SPECIAL = ("large", "real", "sweep", "exhaustive", "error")
"""Beginnings of the names of kinds that are no plain cases."""


class Question(NamedTuple):
    """A call that a program can be asked."""

    operation: str
    arguments: Arguments


def plain_case(operation: str, dtype: str | None = None, *, failing: bool = False) -> tuple[Case, Subcase] | None:
    """The first case of an operation, and its first subcase: a small one, or one that must raise."""
    for (owner, _), kind in sorted(kinds().items(), key=lambda item: item[0]):
        if owner != operation or (dtype is not None and dtype not in kind.dtypes):
            continue
        if kind.name.startswith("error") is failing and not kind.name.startswith(SPECIAL[:4]):
            case = _first(kind, dtype)
            if case is not None:
                return case
    return None


def _first(kind: Kind, dtype: str | None) -> tuple[Case, Subcase] | None:
    for case in kind.cases("quick"):
        if dtype is None or case.dtype == dtype:
            subcases = kind.subcases(case)
            if subcases:
                return case, subcases[0]
    return None


def questions(examiner: Examiner) -> list[Question]:
    """A plain call of each operation that the program has and a contract knows."""
    found = []
    for operation in examiner.operations:
        if operation in contracts() and (chosen := plain_case(operation)) is not None:
            arguments = {name: chosen[1].arguments[name] for name in contracts()[operation].parameters}
            found.append(Question(operation, arguments))
    return found


def answers(examiner: Examiner) -> None:
    """A plain call of each operation, with numbers that do not count up, each twice and with the others between."""

    def talked(conversation: Conversation) -> None:
        asked = questions(examiner)
        numbers = iter((7, 7000, 3, *range(8000, 8000 + 2 * len(asked))))
        first: dict[str, bytes] = {}
        for question in asked:
            _answered(examiner, conversation, question, next(numbers), first)
        kept = set(conversation.left)
        for question in asked:
            _answered(examiner, conversation, question, next(numbers), first)
        if more := [name for name in conversation.left if name not in kept]:
            examiner.advise(
                f"each call leaves files in its folder: {', '.join(more[:5])}{' ...' if len(more) > 5 else ''}",
                "remove what a call no longer needs; all of it is removed at the end, and not before",
            )

    examiner.talk(talked)


def _answered(
    examiner: Examiner, conversation: Conversation, question: Question, seq: int, first: dict[str, bytes]
) -> None:
    heard = examiner.asked(conversation, question.operation, question.arguments, seq)
    conversation.listen()
    if heard.answer.unsupported is not msgspec.UNSET:
        examiner.advise(
            f"{question.operation} is unsupported: {heard.answer.unsupported}",
            "leave an operation out of `operations` if no call of it works",
        )
    if heard.output is None:
        return
    data = heard.output.tobytes()
    if first.setdefault(question.operation, data) != data:
        examiner.fault(
            f"{question.operation}: asked the same again, it gave other bits",
            "compute every output from its own inputs alone",
        )


def strange_operation(examiner: Examiner) -> None:
    """An operation that the program never named."""

    def talked(conversation: Conversation) -> None:
        heard = examiner.asked(conversation, STRANGE_OPERATION, {}, 1)
        if heard.answer.unsupported is msgspec.UNSET:
            note = examiner.advise if heard.answer.ok is msgspec.UNSET else examiner.fault
            told = "error" if heard.answer.ok is msgspec.UNSET else "ok"
            note(
                f"it answered `{told}` to the operation {STRANGE_OPERATION!r}",
                "answer `unsupported` to what is unknown",
            )
        conversation.listen()

    examiner.talk(talked)


def strange_order(examiner: Examiner) -> None:
    """An order that version 1 does not have: a program may end, and must not answer."""

    def talked(conversation: Conversation) -> None:
        conversation.say(STRANGE_ORDER)
        try:
            conversation.listen()
        except Broken as broken:
            if broken.verdict != "crashed":
                examiner.fault(
                    f"it answered an order that it cannot know, {STRANGE_ORDER.decode()}: {broken.message}",
                    "write nothing to standard output for it; ending, with a word on standard error, is fine",
                )

    examiner.talk(talked)


def farewell(examiner: Examiner) -> None:
    """`stop`, and the end of standard input without it."""

    def told(conversation: Conversation) -> None:
        status = conversation.stop()
        if status is None:
            examiner.fault(f"it did not end within {EXIT_SECONDS:g} seconds after `stop`", "end the program at `stop`")
        elif status:
            examiner.advise(f"it ended with status {status} after `stop`", "end with exit code 0")

    def left_alone(conversation: Conversation) -> None:
        if conversation.stop(farewell=False) is None:
            examiner.fault(
                f"it did not end within {EXIT_SECONDS:g} seconds after standard input had ended",
                "end where no line comes any more: the judge may have been killed",
            )

    examiner.talk(told)
    examiner.talk(left_alone)


def again(examiner: Examiner) -> None:
    """Several programs at a time, as with `-n`, and a new one after one was killed, as after a crash."""
    asked = questions(examiner)[:1]

    def talked(one: Conversation) -> None:
        with examiner.conversation() as other:
            other.start()
            for conversation in (other, one, other):
                for question in asked:
                    examiner.asked(conversation, question.operation, question.arguments, 1)
            other.kill()
        with examiner.conversation() as third:
            third.start()
            for question in asked:
                examiner.asked(third, question.operation, question.arguments, 1)

    examiner.talk(talked)
