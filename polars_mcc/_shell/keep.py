"""Counts that are kept: what is new in logs is counted, and put into a store, exactly once.

What is promised, and the tests of it in `tests/shell/` and `tests/store/`:

- what is kept is not read again: `test_no_rows_are_read_again`,
  `test_no_input_is_opened_that_a_listing_tells`, `test_files_that_a_table_keeps_are_not_read_again`
- what has changed is replaced: `test_what_is_new_is_counted_and_what_has_changed_is_replaced`,
  `test_an_etag_tells_what_sizes_do_not`, `test_checksums_see_what_sizes_and_times_do_not`
- what changes meanwhile is counted as it is then:
  `test_an_input_that_changes_meanwhile_is_counted_as_it_is_then`,
  `test_an_object_that_changes_after_it_was_listed_is_counted_as_it_is_then`
- what was moved takes its counts along: `test_what_is_moved_takes_its_counts_along`,
  `test_what_is_moved_takes_its_counts_along_and_what_is_gone_can_be_forgotten`
- the counts of what was deleted stay, until they are forgotten:
  `test_counts_of_what_is_deleted_stay`, `test_a_late_listing_of_inputs_loses_nothing`,
  `test_only_what_is_gone_from_where_was_looked_is_forgotten`
- a store follows the newest version of a table, in steps that are whole:
  `test_a_delta_table_is_counted_version_by_version`,
  `test_an_iceberg_table_is_counted_version_by_version`,
  `test_a_step_of_a_table_is_taken_as_a_whole`, `test_a_step_that_cannot_be_taken_is_not_begun`
- kill it at any moment, run it several times at once: `test_a_process_that_dies_at_every_step`,
  `test_processes_that_are_killed`, `test_of_two_steps_from_one_state_one_is_done`,
  `test_a_process_that_slept_for_days_does_no_harm`, `test_a_late_listing_hides_nothing`
- an input that cannot be read keeps no other out: `test_a_damaged_input_does_not_keep_others_out`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from polars_mcc._log import defaults
from polars_mcc._log.plan_errors import reason
from polars_mcc._shell import inputs
from polars_mcc._shell.asked import Asked
from polars_mcc._shell.inputs import Logs
from polars_mcc._shell.keeping import STATUSES, Keeping
from polars_mcc._shell.look import Files, is_below
from polars_mcc._store.kept import Store
from polars_mcc._store.places import Options, before_pattern, is_url, place
from polars_mcc.prediction_log import PredictionLog


def keep_counts(
    logs: str | Path | Sequence[str | Path],
    store: str | Path,
    *keys: str,
    gold: str = defaults.GOLD,
    pred: str | Sequence[str] = defaults.PRED,
    weight: str | None = None,
    filter: str | None = None,  # noqa: A002 - as the command line has it
    checksum: bool = False,
    forget: bool = False,
    storage_options: Options | None = None,
) -> pl.DataFrame:
    """Count what is new in logs, and keep the counts in a store: each row exactly once.

    Files whose counts are kept are not read again. If a file has changed, its new counts replace
    the old. If it was moved and has its name still, its counts move too. A file that was renamed or
    copied is new. If a file was deleted, its counts stay, until you `forget` them. Of a table of
    Delta or Iceberg, the store follows the newest version: it reads the files that the table has
    added, and drops the counts of those that the table has removed. Call it as often as you like,
    kill it at any moment, run it several times at once: no row is counted twice, and when it
    returns none is missing.

    Args:
        logs: Files, folders of them, or globs: Parquet, CSV, NDJSON or IPC; or tables of Delta or
            Iceberg. Paths and URLs (`s3://`, `gs://`, `az://`) may be mixed.
        store: A folder, or the URL of one; it is made if there is none.
        *keys: What makes slices, as it is typed on the command line: names of columns, or SQL.
        gold: The true label, likewise.
        pred: The predicted label, or several models, likewise.
        weight: How many rows a row stands for, likewise.
        filter: A condition in SQL: only rows for which it holds are counted.
        checksum: Read files to see if they have changed. Otherwise a file has changed if its size
            or its time of modification has; an object, if its size or its ETag has.
        forget: Drop the counts of files and tables that are gone from below what `logs` names.
            Without it they are only listed.
        storage_options: Credentials and settings of an object storage, as Polars takes them. None:
            the environment has them.

    Returns:
        A DataFrame, a row per file, with `input` (String), its path; `status` (Enum): `"counted"`,
        `"replaced"`, `"moved"`, `"unchanged"`; `"removed"` from a table; `"gone"` from where it
        was, or now `"forgotten"`; and `rows` (Int64; Float64 for float weights), how many rows its
        counts stand for.

    Score the store as you would the log: `PredictionLog.from_store(store).by(*keys)`.

    Raises:
        ValueError: The folder is not a store, or its counts are of other columns.
        polars.exceptions.SchemaError: A column has another dtype than in the other inputs.
        OSError: The store cannot be written to; or a file changed each time that it was counted.
        ModuleNotFoundError: There is a URL, and obstore is not installed.

    If files cannot be read, the first is named, when all others have been counted. Errors of
    `counts` are raised too.

    Examples:
        >>> import tempfile
        >>> import polars as pl
        >>> import polars_mcc
        >>> store = tempfile.mkdtemp()
        >>> polars_mcc.keep_counts("data/digits.parquet", store, "ink_band")["status"].to_list()
        ['counted']
        >>> polars_mcc.keep_counts("data/digits.parquet", store, "ink_band")["status"].to_list()
        ['unchanged']
        >>> kept = polars_mcc.PredictionLog.from_store(store).by("ink_band")
        >>> kept.collect().equals(pl.read_parquet("data/digits.parquet").mcc.by("ink_band"))
        True
    """
    paths = [logs] if isinstance(logs, (str, Path)) else list(logs)
    preds = [pred] if isinstance(pred, str) else list(pred)
    typed = {"keys": [*keys], "gold": gold, "pred": preds, "weight": weight}
    names = [*map(str, paths)]
    asked = Asked(PredictionLog.counts, names, filter, typed, storage_options, may_be_gone=forget)
    return kept(asked, str(store), checksum=checksum, forget=forget)


def kept(
    asked: Asked,
    store: str,
    *,
    checksum: bool,
    forget: bool,
    watch: Callable[[Logs], Callable[[int], None]] = lambda _: lambda _: None,
) -> pl.DataFrame:
    """Count what is new in the files.

    `watch` is told which files are to be counted. What it returns is told how many rows each has.
    """
    _check_outside(asked.logs, asked.found, store)
    log = Files(asked.found, checksum=checksum)
    keeping = Keeping(asked, log, Store(place(store, asked.storage_options)), watch)
    keeping.make()
    keeping.keep()
    done = [(log.shown.get(path, path), *told) for path, told in keeping.done.items()]
    gone = keeping.gone(asked.logs)
    if gone and forget:
        keeping.drop(gone)
    done += [(one.path, "forgotten" if forget else "gone", one.rows) for one in gone]
    if keeping.failures:
        (file, error), *others = keeping.failures.items()
        what = reason(error)
        named = "" if file in what else f"'{file}': "
        more = f" (and so {len(others)} more)" if others else ""
        has = "is as it was" if keeping.is_as_it_was else "has the counts of all other inputs"
        msg = f"{named}{what}{more}; the store '{store}' {has}"
        known = [one for one in type(error).__mro__ if "polars_mcc" not in one.__module__]
        raise known[0](msg) from error  # An error of ours may take more than a message.
    return pl.DataFrame(
        done,
        schema={"input": pl.String(), "status": pl.Enum(STATUSES), "rows": keeping.rows_dtype},
        orient="row",
        strict=False,
    )


def _check_outside(logs: Sequence[str], found: Logs, store: str) -> None:
    """Raise a ValueError if a log is in the store, the store in a log, or a log is a pipe."""
    if found.files == [inputs.STDIN]:
        msg = "a store keeps the counts of files: write the standard input to one, and name it"
        raise ValueError(msg)
    path = store if is_url(store) else os.path.realpath(store)
    is_inside = is_below([store])
    for file, where in found.places.items():
        if is_inside(where):
            msg = f"'{file}' is in the store '{store}' itself: have the store outside of the logs"
            raise ValueError(msg)
    for log in logs:
        if before_pattern(log) is None and is_below([log])(path):
            msg = f"the store '{store}' is in the log '{log}': have the store outside of the logs"
            raise ValueError(msg)
