"""The public names of the package. To export one, import it here under its own name.

`polars_mcc/__init__.py` loads this module when a public name is used.
"""
# ruff: noqa: PLC0414 - the alias tells type checkers that the name is public

from polars_mcc._base.errors_and_warnings import PredictionLogWarning as PredictionLogWarning
from polars_mcc._display.progress_bar import progress as progress
from polars_mcc._display.table_and_to_numpy import table as table
from polars_mcc._display.table_and_to_numpy import to_numpy as to_numpy
from polars_mcc._intervals.interval_options import Bootstrap as Bootstrap
from polars_mcc._keys.bins import bins as bins
from polars_mcc._keys.each_rollup_cube_sets_trailing import cube as cube
from polars_mcc._keys.each_rollup_cube_sets_trailing import each as each
from polars_mcc._keys.each_rollup_cube_sets_trailing import rollup as rollup
from polars_mcc._keys.each_rollup_cube_sets_trailing import sets as sets
from polars_mcc._keys.each_rollup_cube_sets_trailing import trailing as trailing
from polars_mcc._metrics.registry import metrics as metrics
from polars_mcc._metrics.registry import register_metric as register_metric
from polars_mcc._store.keep_counts import keep_counts as keep_counts
from polars_mcc._verbs.check import CheckError as CheckError
from polars_mcc._version import show_versions as show_versions
from polars_mcc.expr_namespace import ExprMcc as ExprMcc
from polars_mcc.expr_namespace import SeriesMcc as SeriesMcc
from polars_mcc.prediction_log import PredictionLog as PredictionLog
