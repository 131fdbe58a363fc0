"""Keep counts in a store: count only new and changed inputs, each row exactly once.

The guide, *Nightly counts*, shows how to use it. The promises, each with its tests in
`tests/shell/` and `tests/store/`:

- an input with counts in the store is not read again: `test_no_rows_are_read_again`,
  `test_no_input_is_opened_that_a_listing_tells`, `test_files_that_a_table_keeps_are_not_read_again`
- the counts of a changed input are replaced:
  `test_what_is_new_is_counted_and_what_has_changed_is_replaced`,
  `test_an_etag_tells_what_sizes_do_not`, `test_checksums_see_what_sizes_and_times_do_not`
- an input that changes during the run is counted as it is after the change:
  `test_an_input_that_changes_meanwhile_is_counted_as_it_is_then`,
  `test_an_object_that_changes_after_it_was_listed_is_counted_as_it_is_then`
- a moved input keeps its counts: `test_what_is_moved_takes_its_counts_along`,
  `test_what_is_moved_takes_its_counts_along_and_what_is_gone_can_be_forgotten`
- the counts of a deleted input stay until the user drops them with `forget`:
  `test_counts_of_what_is_deleted_stay`, `test_a_late_listing_of_inputs_loses_nothing`,
  `test_only_what_is_gone_from_where_was_looked_is_forgotten`
- a store follows the newest version of a table, and shows no query a part of a version:
  `test_a_delta_table_is_counted_version_by_version`,
  `test_an_iceberg_table_is_counted_version_by_version`,
  `test_a_step_of_a_table_is_taken_as_a_whole`, `test_a_step_that_cannot_be_taken_is_not_begun`
- it may be killed at any moment, and run several times at once:
  `test_a_process_that_dies_at_every_step`, `test_processes_that_are_killed`,
  `test_of_two_steps_from_one_state_one_is_done`,
  `test_a_process_that_slept_for_days_does_no_harm`, `test_a_late_listing_hides_nothing`
- an unreadable input does not stop the others: `test_a_damaged_input_does_not_keep_others_out`
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
    filter: str | None = None,  # noqa: A002 - the name of the option
    checksum: bool = False,
    forget: bool = False,
    storage_options: Options | None = None,
) -> pl.DataFrame:
    """Count new and changed inputs, and keep their counts in a store: each row exactly once.

    Files that the store has counts of are not read again. If a file changes, its new counts replace
    the old ones. A file that moves to another folder under the same name keeps its counts. A
    renamed or copied file is new. The counts of a deleted file stay until you pass `forget`. The
    store follows the newest version of a Delta or Iceberg table: it counts the files that were
    added to the table, and drops the counts of the files that were removed from it. You may call
    the function at any time, kill it at any moment, and run it several times at once. No row is
    counted twice. When the function returns, no row is missing.

    Args:
        logs: Files, folders or globs. Files are Parquet, CSV, NDJSON or IPC. A folder may be a
            Delta or Iceberg table. Paths and URLs (`s3://`, `gs://`, `az://`) may be mixed.
        store: A folder, or the URL of a folder. It is created if it does not exist.
        *keys: What makes slices, as on the command line: column names, or SQL.
        gold: The true label, a column name or SQL.
        pred: The predicted label, a column name or SQL, or a list of them for several models.
        weight: How many rows a row stands for, a column name or SQL.
        filter: A condition in SQL. Only the rows where it is true are counted.
        checksum: Read every file, and find changed files by a checksum of the content. Otherwise a
            file has changed if its size or modification time differs, and an object if its size or
            ETag differs.
        forget: Drop the counts of files and tables that no longer exist in the places that `logs`
            names. Otherwise they are only listed.
        storage_options: Credentials and settings for object storage, as in Polars. None: taken from
            the environment.

    Returns:
        A DataFrame with a row per file. Its columns are `input` (String), the path; `status`
        (Enum): `"counted"`, `"replaced"`, `"moved"`, `"unchanged"`, `"removed"` (from a table),
        `"gone"` (it no longer exists) or `"forgotten"` (gone, and its counts are dropped); and
        `rows` (Int64; Float64 for float weights), how many rows the counts stand for.

    Score the store like the log: `PredictionLog.from_store(store).by(*keys)`.

    Raises:
        ValueError: The folder is not a store, or its counts are of other columns.
        polars.exceptions.SchemaError: A column has another dtype than in the other inputs.
        OSError: The store cannot be written to, or a file changed each time it was counted.
        ModuleNotFoundError: A URL is given, and obstore is not installed.

    If files cannot be read, all others are counted first. Then an error names the first unreadable
    file. Errors of `counts` are raised too.

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
    """Count new and changed inputs, and keep their counts in a store.

    `watch` is called with the files to count, and returns a function. That function is called with
    the number of rows of each counted file: a progress bar.
    """
    _check_outside(asked.logs, asked.found, store)
    log = Files(asked.found, checksum=checksum)
    keeping = Keeping(asked, log, Store(place(store, asked.storage_options)), watch)
    keeping.make()
    keeping.keep()
    done = [(log.shown.get(path, path), *told) for path, told in keeping.done.items()]
    gone = keeping.gone([*asked.logs, *asked.found.links])
    if gone and forget:
        keeping.drop(gone)
    done += [(one.path, "forgotten" if forget else "gone", one.rows) for one in gone]
    if keeping.failures:
        (file, error), *others = keeping.failures.items()
        what = reason(error)
        named = "" if file in what else f"'{file}': "
        more = f" (and {len(others)} more inputs)" if others else ""
        has = "is unchanged" if keeping.is_as_it_was else "has the counts of all other inputs"
        msg = f"{named}{what}{more}; the store '{store}' {has}"
        known = [one for one in type(error).__mro__ if "polars_mcc" not in one.__module__]
        raise known[0](msg) from error  # Our own errors may need more arguments.
    return pl.DataFrame(
        done,
        schema={"input": pl.String(), "status": pl.Enum(STATUSES), "rows": keeping.rows_dtype},
        orient="row",
        strict=False,
    )


def _check_outside(logs: Sequence[str], found: Logs, store: str) -> None:
    """Raise a ValueError if a log is inside the store, the store inside a log, or a log is `-`."""
    if found.files == [inputs.STDIN]:
        msg = "a store keeps the counts of files; save the standard input to a file, and pass that"
        raise ValueError(msg)
    path = store if is_url(store) else os.path.realpath(store)
    is_inside = is_below([store])
    for file, where in found.places.items():
        if is_inside(where):
            msg = f"the log '{file}' is inside the store '{store}'; use a store outside the logs"
            raise ValueError(msg)
    for log in (*logs, *found.links):
        if before_pattern(log) is None and is_below([log])(path):
            msg = f"the store '{store}' is inside the log '{log}'; use a store outside the logs"
            raise ValueError(msg)
