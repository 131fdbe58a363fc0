from __future__ import annotations

import os

# Small logs, and a process of tests for each core: more threads would wait for each other.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ["POLARS_WARN_UNSTABLE"] = "1"  # see filterwarnings in pyproject.toml

import shutil

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, settings
from support import with_paths_of_windows

from polars_mcc._metrics import registry

collect_ignore_glob = ["benchmarks/*"]  # no tests: to look for doctests imports every peer

settings.register_profile(
    "default",
    deadline=None,
    max_examples=15,
    # The only function-scoped fixture, `run`, holds no state.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# For tests/mutation.py: that a test fails is enough.
settings.register_profile(
    "quick",
    settings.get_profile("default"),
    max_examples=10,
    phases=[Phase.explicit, Phase.generate],
)
settings.register_profile("long", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


LONGEST = (
    "test_every_format_is_read_again",
    "test_any_operations_leave_what_a_recount_finds",
    "test_blocks_run_and_show_what_they_print[every_night.md]",
    "test_under_strict_mypy",
    "test_the_documentation_is_built",
    "test_the_interval_of_a_ratio_holds_as_often_as_the_docstring_says",
    "test_a_run_",  # of a store
    "test_a_fall_is_found_once_and_nothing_else_is",
)


def pytest_collection_modifyitems(config, items):
    """A docstring that a verb and the method of a log have is tried once.

    Long tests come first: one that came last would leave the other cores with nothing to do.
    """
    docstrings, twice = set(), []
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            if item.dtest.docstring in docstrings:
                twice.append(item)
            docstrings.add(item.dtest.docstring)
    config.hook.pytest_deselected(items=twice)
    items[:] = [item for item in items if item not in twice]
    items.sort(key=lambda item: not item.name.startswith(LONGEST))


@pytest.fixture(autouse=True)
def _only_the_metrics_that_are_built_in():
    """What a doctest or another test has registered is forgotten."""
    known = registry._REGISTRY
    for name in [name for name in known if name not in registry._BUILT_IN]:
        del known[name]


@pytest.fixture(autouse=True)
def _with_paths_of_windows(monkeypatch):
    """For tests/inputs and tests/store, on a system that has other paths."""
    if os.environ.get("POLARS_MCC_PATHS") == "windows":
        with_paths_of_windows(monkeypatch)


@pytest.fixture
def run():
    """Ask a query of a LazyFrame, on the engine of logs that are larger than memory.

    That the others give the same is for tests/test_plan.py.
    """

    def ask(frame: pl.DataFrame, query) -> pl.DataFrame:
        answer = query(frame.lazy())
        assert isinstance(answer, pl.LazyFrame)
        return answer.collect(engine="streaming")

    return ask


@pytest.fixture(scope="session")
def chromium():
    """Chromium, headless, driven by its own driver; its log of errors is kept."""
    from selenium import webdriver  # noqa: PLC0415 - for few tests

    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        if os.environ.get("POLARS_MCC_BROWSER") == "required":
            pytest.fail("chromium and chromedriver must be here: .ci/run installs them")
        pytest.skip("no chromium and chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    quiet = ["no-first-run", "disable-background-networking", "disable-sync", "disable-quic"]
    for flag in ["headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", *quiet]:
        options.add_argument(f"--{flag}")
    options.add_argument("--window-size=1200,1600")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as chrome:
        chrome.set_script_timeout(300)  # A checker of a page takes a minute on a busy machine.
        yield chrome


@pytest.fixture
def browser(chromium):
    """Chromium on an empty page, with empty logs: each test sees its own messages only."""
    chromium.get("about:blank")
    for name in ("browser", "performance"):
        chromium.get_log(name)
    return chromium
