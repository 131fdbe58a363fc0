"""Keep counts in a store: count only new and changed inputs, each row exactly once.

The guide, *Nightly counts*, shows how to use it. The promises, each with its tests in
`tests/cli/` and `tests/store/`:

- an input with counts in the store is not read again: `test_no_rows_are_read_again`,
  `test_an_input_without_rows_is_not_read_again`, `test_no_input_is_opened_that_a_listing_tells`,
  `test_files_that_a_table_keeps_are_not_read_again`
- the counts of a changed input are replaced:
  `test_what_is_new_is_counted_and_what_has_changed_is_replaced`,
  `test_an_etag_tells_what_sizes_do_not`,
  `test_a_file_that_becomes_a_folder_of_its_name_is_counted_once`,
  `test_an_object_that_becomes_a_folder_of_its_name_is_counted_once`
- an input that changes during the run is counted as it is after the change:
  `test_an_input_that_changes_meanwhile_is_counted_as_it_is_then`,
  `test_an_object_that_changes_after_it_was_listed_is_counted_as_it_is_then`
- a link and its target are one input: `test_what_moves_and_leaves_a_link_is_one_input`,
  `test_a_link_that_turns_to_another_folder_takes_its_counts_along`,
  `test_two_entries_that_become_one_file_are_counted_once`
- the counts of a deleted input stay until the user drops them with `forget`:
  `test_counts_of_what_is_deleted_stay`, `test_a_late_listing_of_inputs_loses_nothing`,
  `test_only_what_is_gone_from_where_was_looked_is_forgotten`
- a store follows the newest version of a table, and shows no query a part of a version:
  `test_a_delta_table_is_counted_version_by_version`,
  `test_an_iceberg_table_is_counted_version_by_version`,
  `test_a_step_of_a_table_is_taken_as_a_whole`, `test_a_step_that_cannot_be_taken_is_not_begun`
- it may be killed at any moment, and run several times at once: `test_processes_that_are_killed`,
  `test_of_two_steps_from_one_version_one_is_done`,
  `test_who_has_looked_before_a_step_does_not_take_it_back`,
  `test_any_operations_leave_what_a_recount_finds`
- an unreadable input does not stop the others: `test_a_damaged_input_does_not_keep_others_out`
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from polars_mcc._base import defaults
from polars_mcc._inputs.paths_and_settings import Options


def keep_counts(
    logs: str | Path | Sequence[str | Path],
    store: str | Path,
    *keys: str,
    gold: str = defaults.GOLD,
    pred: str | Sequence[str] = defaults.PRED,
    weight: str | None = None,
    filter: str | None = None,  # noqa: A002 - the name of the option
    forget: bool = False,
    history: int | None = None,
    storage_options: Options | None = None,
) -> pl.DataFrame:
    """Count new and changed inputs, and keep their counts in a store: each row exactly once.

    Files that the store has counts of are not read again. If a file changes, its new counts replace
    the old ones. A moved, renamed or copied file is a new file. The counts of a file that is gone
    stay until you pass `forget`, so pass it after you move files. The store follows the newest
    version of a Delta or Iceberg table. You may call the function at any time, kill it at any
    moment, and run it several times at once. No row is counted twice. When the function returns,
    no row is missing.

    The store is a Delta table that other tools can read: a row per group of equal rows of a file,
    with how many they are (`n`), and the file with its size and version.

    Args:
        logs: Files, folders or globs. Files are Parquet, CSV, NDJSON or IPC. A folder may be a
            Delta or Iceberg table. Paths and URLs (`s3://`, `gs://`, `az://`) may be mixed.
        store: A folder, or the URL of a folder. It is created if it does not exist.
        *keys: What makes slices, as on the command line: column names, or SQL.
        gold: The true label, a column name or SQL.
        pred: The predicted label, a column name or SQL, or a list of them for several models.
        weight: How many rows a row stands for, a column name or SQL.
        filter: A condition in SQL. Only the rows where it is true are counted.
        forget: Drop the counts of files and tables that no longer exist in the places that `logs`
            names. Otherwise they are only listed.
        history: For how many days earlier versions of the store can be read. Then their files are
            deleted. None: as before; 30 days for a new store.
        storage_options: Credentials and settings for object storage, as in Polars. None: taken from
            the environment.

    Returns:
        A DataFrame with a row per file. Its columns are `input` (String), the path; `status`
        (Enum): `"counted"`, `"replaced"`, `"unchanged"`, `"removed"` (from a table, or the same
        file under another name), `"gone"` (it no longer exists) or `"forgotten"` (gone, and its
        counts are dropped); and `rows` (Int64; Float64 for float weights), how many rows the counts
        stand for.

    Score the store like the log: `PredictionLog.from_store(store).by(*keys)`.

    Raises:
        TypeError: A key or another column is no text, such as an expression.
        ValueError: The folder is not a store, or its counts are of other columns. `history` is
            below 1.
        polars.exceptions.SQLInterfaceError: SQL is not one expression of the columns of the log.
        polars.exceptions.SchemaError: A column has another dtype than in the other inputs.
        OSError: The store cannot be written to, or a file changed each time it was counted.
        ModuleNotFoundError: deltalake is not installed; or a log is a URL, and obstore is not.

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
    listed = [pred] if isinstance(pred, (str, pl.Expr)) else list(pred)
    for text in (*keys, gold, *listed, *(text for text in (weight, filter) if text is not None)):
        if not isinstance(text, str):
            msg = (
                f"keep_counts takes names of columns, or SQL, got {text}: the store keeps the "
                "words, so that each run asks the same; write SQL, as in \"date_trunc('week', ts) "
                'AS week"'
            )
            raise TypeError(msg)
    from polars_mcc._inputs.log_from_files import LogOptions, TypedLog  # noqa: PLC0415 - few need it
    from polars_mcc._inputs.read_files import find_logs  # noqa: PLC0415 - as above
    from polars_mcc._store.count_and_commit import keep  # noqa: PLC0415 - as above

    paths = [logs] if isinstance(logs, (str, Path)) else list(logs)
    inputs = find_logs([*map(str, paths)], storage_options, may_be_gone=forget)
    options = LogOptions(gold=gold, pred=listed, weight=weight, filter=filter)
    return keep(TypedLog(inputs, options, keys), str(store), forget=forget, history=history)
