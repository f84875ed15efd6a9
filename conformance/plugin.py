"""The pytest plugin: options, markers, and the controller that gathers records.

It is imported in every run of pytest on a machine where mlx-assay is installed, so it imports nothing but pytest and
five small modules, and does and prints nothing until a case of this suite is asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

import pytest

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.crew import Crew, drain, enlist, hear
from mlx_assay.conformance.nodes import FOLDER, case_id, is_case, leads_here
from mlx_assay.conformance.options import FLAGS, KEYS, Options, distribution, flag, output
from mlx_assay.conformance.quotation import passage

if TYPE_CHECKING:
    from mlx_assay.conformance.checking.fixture import Guard, HostMetal
    from mlx_assay.conformance.record import Record
    from mlx_assay.conformance.reporting.report import Report
    from mlx_assay.conformance.session import Session


class Screen(Protocol):
    """Who shows a run while it lasts, in place of pytest's own progress."""

    def started(self, declared: int) -> None: ...

    def judged(self, record: Record) -> None: ...

    def finished(self, report: Report) -> None: ...


SCREEN = pytest.StashKey[Screen]()
FAILURE = pytest.StashKey[str]()
"""Why the last report is not on disk, or empty."""
GUARD: pytest.StashKey[Guard] = pytest.StashKey()
PROPERTY = "mlx_assay"
CHECK_MARK = "mlx_assay_check"
WORKER_PROPERTY = "mlx_assay_worker"
STAGES_PROPERTY = "mlx_assay_stages"
CRASHED = "???"
"""The phase that xdist names in its report of an item whose worker died."""
EXPLORATION = "test_exploration"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mlx_assay", "mlx-assay: conformance of kernels")
    query = "path glob with optional ?key=value, or a case id; may be given several times (default: every case)"
    group.addoption("--mlx-assay-query", action="append", metavar="QUERY", help=query)
    parser.addini("mlx_assay_query", query, type="linelist", default=[])
    without = "oracle that is not to be asked, by name; may be given several times"
    group.addoption("--mlx-assay-without", action="append", metavar="ORACLE", help=without)
    parser.addini("mlx_assay_without", without, type="linelist", default=[])
    for name, text in FLAGS.items():
        group.addoption(f"--mlx-assay-{name}", action="store_true", default=None, help=text)
        parser.addini(f"mlx_assay_{name}", text, "bool", default=False)
    for name, text in KEYS.items():
        group.addoption(f"--mlx-assay-{name}", metavar=name.upper(), help=text)
        parser.addini(f"mlx_assay_{name}", text, default="")
    parser.addini("mlx_assay_check", "run kernels under the checker in tests with host_metal", "bool", default=False)
    parser.addini("mlx_assay_check_ignore", "kinds of findings to pass over there", "args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mlx_assay(tag): a case's tag, for -m \"mlx_assay(tag='nan')\"")
    check = "mlx_assay_check(kernels, ignore, schedules, seed, launch_limit, warnings_as_errors, enabled)"
    config.addinivalue_line("markers", f"{check}: run the kernels of a test with host_metal under the checker")
    stopwatch.ensure(flag(config, "stages"))
    if hasattr(config, "workerinput"):
        hear()
        return
    if _asked(config):
        try:
            options = Options.of(config)
            if options.report is not None:
                output(options.report)
            distribution(config.getoption("dist", "no"))
        except ValueError as error:
            raise pytest.UsageError(f"mlx-assay: {passage(str(error))}") from None
        _require_executor(options)
        _require_profile(options)
    _check_ignored(config)
    config.pluginmanager.register(Controller(config), "mlx_assay_controller")


def _check_ignored(config: pytest.Config) -> None:
    if ignored := config.getini(f"{CHECK_MARK}_ignore"):
        from mlx_assay.conformance.checking.request import asked

        try:
            asked("pytest", ignore=ignored)
        except ValueError as error:
            raise pytest.UsageError(f"{CHECK_MARK}_ignore: {error}") from None


def _require_executor(options: Options) -> None:
    """Ends pytest before anything runs where the executor asked for is unknown, or cannot run here (exit code 3)."""
    if options.executor is None and not options.checked:
        return
    from mlx_assay.conformance.session import Session
    from mlx_assay.conformance.verbs.refusal import Refusal, checkable_executor, checked_executor
    from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

    try:
        (checkable_executor if options.checked else checked_executor)(options.executor)
    except Refusal as refusal:
        if refusal.code != EXIT_INCOMPLETE:
            raise pytest.UsageError(f"mlx-assay: {passage(str(refusal))}") from None
        if options.report is not None:
            # No report of an earlier run may stand for this one.
            Session(options).finish()
        pytest.exit(f"mlx-assay: incomplete, nothing was judged: {passage(str(refusal))}", refusal.code)


def _require_profile(options: Options) -> None:
    """Ends pytest before anything runs where the profile asked for is no sound capture, or has nothing to act on."""
    if options.profile is None:
        return
    from mlx_assay.conformance.verbs.refusal import Refusal, checked_profile

    try:
        checked_profile(options.profile, options.executor)
    except Refusal as refusal:
        raise pytest.UsageError(f"mlx-assay: {passage(str(refusal))}") from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves exploration out where a query chose listed cases, rather than show it as a skip for want of parameters."""
    if config.getoption("mlx_assay_query") or config.getini("mlx_assay_query"):
        explored = [item for item in items if item.path.is_relative_to(FOLDER) and item.path.stem == EXPLORATION]
        if explored:
            items[:] = [item for item in items if item not in explored]
            config.hook.pytest_deselected(items=explored)


@pytest.fixture
def host_metal(request: pytest.FixtureRequest) -> Iterator[HostMetal]:
    """The test's code takes its Metal path, and its kernels run on this CPU: see mlx_assay.impl.host_metal.

    They run under the checker inside `with host_metal.checked():`, in tests marked mlx_assay_check, and in all tests
    with the ini key mlx_assay_check; findings fail the test.
    """
    from mlx_assay.conformance.checking.fixture import HostMetal, guard_of
    from mlx_assay.impl.executors import host_metal

    guard = guard_of(request.node)
    with host_metal(), guard.watching() if guard else nullcontext():
        if guard:
            request.node.stash[GUARD] = guard
        yield HostMetal()


def pytest_collection_finish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput") and any(is_case(item.nodeid) for item in session.items):
        enlist()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Drops a case's record from its item once pytest has told of it, as items live until pytest ends."""
    try:
        return (yield)
    finally:
        if is_case(item.nodeid):
            item.user_properties.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails a test whose kernels have findings; one that fails by itself gets them beside its own failure.

    So does a marked test that never asked for host_metal: nothing watched its kernels.
    """
    try:
        yield
    except BaseException as error:
        if "No Metal back-end" in str(error) and "host_metal" in getattr(item, "fixturenames", ()):
            from mlx_assay.conformance.checking.fixture import MADE_BEFORE

            item.add_report_section("call", "mlx-assay", MADE_BEFORE)
        guard = item.stash.get(GUARD, None)
        if guard and (told := guard.verdict()):
            item.add_report_section("call", "mlx-assay check", told)
        raise
    # Not before: a test may ask for its fixtures while it runs.
    if guard := item.stash.get(GUARD, None):
        guard.judge()
    elif (mark := item.get_closest_marker(CHECK_MARK)) and mark.kwargs.get("enabled", True):
        pytest.fail(
            f"expected a test marked {CHECK_MARK} to use the fixture host_metal but it does not: nothing was checked. "
            f"Add the fixture, or leave the test out: @pytest.mark.{CHECK_MARK}(enabled=False)",
            pytrace=False,
        )


def _asked(config: pytest.Config) -> bool:
    """Whether an option or an argument of the command line points at this suite."""
    given = any(config.getoption(f"mlx_assay_{name}") is not None for name in ("query", "without", *FLAGS, *KEYS))
    return given or any(leads_here(argument, config) for argument in config.args)


class Controller:
    """Gathers records where pytest reports, which with xdist is not where cases run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.screen = config, config.stash.get(SCREEN, None)
        self._began = stopwatch.began()
        self._session: Session | None = None
        self._crew = Crew(_asked(config))
        config.pluginmanager.register(self._crew, "mlx_assay_crew")
        self._collected = False

    @property
    def session(self) -> Session:
        """Made when the first case shows up."""
        if self._session is None:
            from mlx_assay.conformance.session import Session

            self._session = Session(Options.of(self.config), self.screen.judged if self.screen else None, self._began)
        return self._session

    def pytest_report_header(self) -> list[str]:
        if not _asked(self.config):
            return []
        from mlx_assay.conformance.reporting.summary import header

        return header(Options.of(self.config))

    def pytest_collection_modifyitems(self) -> None:
        self._collected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # pytest calls this, too, where Ctrl-C has left some of it.
        if self._collected:
            self._declare(item.nodeid for item in session.items)

    def pytest_keyboard_interrupt(self) -> None:
        if self._session or self.screen:
            self._crew.interrupt()
            drain(self.config.pluginmanager.get_plugin("dsession"))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        self._declare(ids)

    def _declare(self, node_ids: Iterable[str]) -> None:
        cases = [case_id(node_id) for node_id in node_ids if is_case(node_id)]
        if cases and not self.config.getoption("collectonly"):
            before = self.session.declared
            self.session.declare(cases)
            if self.screen and self.session.declared != before:
                self.screen.started(self.session.declared)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Keeps pytest silent on a case that the screen writes of; a fault of the judge stays pytest's to tell."""
        if self.screen is None or not is_case(report.nodeid):
            return None
        told = not report.failed or report.when == CRASHED or PROPERTY in dict(report.user_properties)
        return ("" if told else "failed", "", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not is_case(report.nodeid):
            return
        properties = dict(report.user_properties)
        if worker := properties.get(WORKER_PROPERTY):
            self.session.learn(str(worker))
        if (spent := properties.get(STAGES_PROPERTY)) and report.when == "call":
            self.session.account(str(spent))
        if record := properties.get(PROPERTY):
            self.session.add(str(record))
        elif report.failed:
            self.session.lose(case_id(report.nodeid), report.when == CRASHED, report.longreprtext)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._session is None:
            return
        report = self._session.finish()
        self.config.stash[FAILURE] = self._session.failure
        if self.screen:
            self.screen.finished(report)
        if report.exit_code and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._session is None or self.screen:
            return
        from mlx_assay.conformance.reporting.summary import closing, worst

        report = self._session.report()
        terminalreporter.section("mlx-assay")
        for line in (*worst(report), *closing(report, self._session.path)):
            terminalreporter.write_line(line)
        if failure := self._session.failure:
            terminalreporter.write_line(f"the report cannot be written: {failure}; what stands there is not all of it")
