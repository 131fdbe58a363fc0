from __future__ import annotations

import os

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, settings

from polars_mcc._scores import registry

settings.register_profile(
    "default",
    deadline=None,
    max_examples=50,
    # The only function-scoped fixture, `run`, holds no state.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("fewer", settings.get_profile("default"), max_examples=12)
# For tests/mutation.py: that a test fails is enough.
settings.register_profile(
    "quick",
    settings.get_profile("default"),
    max_examples=10,
    phases=[Phase.explicit, Phase.generate],
)
settings.register_profile("long", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _only_the_metrics_that_are_built_in():
    """What a doctest or another test has registered is forgotten."""
    known = registry._REGISTRY
    for name in [name for name in known if name not in registry._BUILT_IN]:
        del known[name]


@pytest.fixture(params=["DataFrame", "streaming", "in-memory"])
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
