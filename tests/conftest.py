from __future__ import annotations

import os

# Small logs, and a process of tests for each core: more threads would wait for each other.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ["POLARS_WARN_UNSTABLE"] = "1"  # see filterwarnings in pyproject.toml

import shutil
import zlib
from collections import Counter, defaultdict

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, settings

from polars_mcc._report import page
from polars_mcc._scores import registry

collect_ignore_glob = ["benchmarks/*"]  # no tests: to look for doctests imports every peer

settings.register_profile(
    "default",
    deadline=None,
    max_examples=3,  # CI runs each property with more
    # The only function-scoped fixture, `run`, holds no state.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("some", settings.get_profile("default"), max_examples=10)
settings.register_profile("more", settings.get_profile("default"), max_examples=25)
# For tests/mutation.py: that a test fails is enough.
settings.register_profile(
    "quick",
    settings.get_profile("default"),
    max_examples=10,
    phases=[Phase.explicit, Phase.generate],
)
settings.register_profile("long", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test with parameters, a default run takes few cases: the rest is slow.

    Each value of each parameter is in one of them, or in so many as the mark `few_cases` says. The
    engines of `run` take turns: half of the tests that use it run on each. Of two equal docstrings,
    of a verb and of the method of a log, one is slow.
    """
    tests, docstrings = defaultdict(list), set()
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            if item.dtest.docstring in docstrings:
                item.add_marker(pytest.mark.slow)
            docstrings.add(item.dtest.docstring)
        if "chromium" in getattr(item, "fixturenames", ()):  # one browser, in one process
            item.add_marker(pytest.mark.xdist_group("browser"))
        if not item.get_closest_marker("slow") and hasattr(item, "callspec"):
            tests[item.path, item.nodeid.split("[")[0]].append(item)
    for (_, test), cases in tests.items():
        few = cases[0].get_closest_marker("few_cases")
        taken = few_of(
            cases, few.args[0] if few else len(cases), ENGINES[zlib.crc32(test.encode()) % 2]
        )
        for case in cases:
            if case not in taken:
                case.add_marker(pytest.mark.slow)


ENGINES = ("DataFrame", "streaming")


def few_of(cases: list, most: int, engine: str) -> list:
    """At most so many cases that have most values of the parameters, if possible on an engine."""
    left = sorted(cases, key=lambda case: case.nodeid)  # the same in each run
    taken, used = [], Counter()
    missing = set().union(*map(values_of, left))
    while left and len(taken) < most and (missing or not taken):
        best = max(
            left,
            key=lambda case: (
                len(missing & values_of(case)),
                case.callspec.params.get("run") == engine,
                -sum(used[value] for value in values_of(case)),
            ),
        )
        missing -= values_of(best)
        used.update(values_of(best))
        left.remove(best)
        taken.append(best)
    return taken


def values_of(case) -> set[tuple[int, str]]:
    """The values of the parameters of a test but for the engine, by their places and names."""
    engine = case.callspec.params.get("run")
    return {(place, name) for place, name in enumerate(case.callspec._idlist) if name != engine}


@pytest.fixture(autouse=True)
def _only_the_metrics_that_are_built_in():
    """What a doctest or another test has registered is forgotten."""
    known = registry._REGISTRY
    for name in [name for name in known if name not in registry._BUILT_IN]:
        del known[name]


@pytest.fixture(scope="session", autouse=True)
def _libraries_of_charts_are_bundled_once(tmp_path_factory, worker_id):
    """To bundle them takes longer than all else in a page. A command in a process of its own does.

    What stands in for this bundles at the first page, and then reads what it has written: in the
    folder that the processes of one run share.
    """
    folder = tmp_path_factory.getbasetemp()
    file = (folder if worker_id == "master" else folder.parent) / "bundle.js"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page, "_BUNDLE", BUNDLE_ONCE.format(str(file)))
        yield


BUNDLE_ONCE = """
import os, pathlib, sys
file = pathlib.Path({!r})
if not file.exists():
    import vl_convert
    new = file.with_suffix(f".{{os.getpid()}}")  # whole, before another process reads it
    new.write_text(vl_convert.javascript_bundle(None, vl_version=sys.argv[1]), "utf-8")
    new.replace(file)
sys.stdout.reconfigure(encoding="utf-8")
sys.stdout.write(file.read_text("utf-8"))
"""


@pytest.fixture(
    params=["DataFrame", "streaming", pytest.param("in-memory", marks=pytest.mark.slow)]
)
def run(request):
    """Ask a query of a DataFrame, or of a LazyFrame on one of the engines."""

    def ask(frame: pl.DataFrame, query) -> pl.DataFrame:
        if request.param == "DataFrame":
            answer = query(frame)
            assert isinstance(answer, pl.DataFrame)
            return answer
        answer = query(frame.lazy())
        assert isinstance(answer, pl.LazyFrame)
        return answer.collect(engine=request.param)

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
