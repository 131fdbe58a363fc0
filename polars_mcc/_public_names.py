"""The public names of the package. To export one, import it here under its own name.

`polars_mcc/__init__.py` loads this module when a public name is used.
"""
# ruff: noqa: PLC0414 - the alias tells type checkers that the name is public

from polars_mcc._counts.remarks import PredictionLogWarning as PredictionLogWarning
from polars_mcc._inference.options import Bootstrap as Bootstrap
from polars_mcc._log.bins import bins as bins
from polars_mcc._log.key_sets import cube as cube
from polars_mcc._log.key_sets import each as each
from polars_mcc._log.key_sets import rollup as rollup
from polars_mcc._log.key_sets import sets as sets
from polars_mcc._log.trailing import trailing as trailing
from polars_mcc._scores.registry import metrics as metrics
from polars_mcc._scores.registry import register_metric as register_metric
from polars_mcc._shell.keep import keep_counts as keep_counts
from polars_mcc._show.progress import progress as progress
from polars_mcc._show.table import table as table
from polars_mcc._show.table import to_numpy as to_numpy
from polars_mcc._verbs.check import CheckError as CheckError
from polars_mcc.namespaces import ExprMcc as ExprMcc
from polars_mcc.namespaces import SeriesMcc as SeriesMcc
from polars_mcc.prediction_log import PredictionLog as PredictionLog
