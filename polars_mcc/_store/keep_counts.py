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
from itertools import chain
from pathlib import Path
from typing import Any

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
    outcomes: str | Path | Sequence[str | Path] | None = None,
    on: str | Sequence[str] | None = None,
    latest: str | None = None,
    time: str | None = None,
    recount: str | None = None,
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
        outcomes: Where the labels are, if they come later: files, as for `logs`. `gold` and
            `latest` are then columns of them. Inputs are then counted again, see `recount`. The
            rows that wait for a label are kept too.
        on: The id that logs and outcomes share, a column name or SQL, or a list of several.
        latest: The time of a label, in the outcomes. The newest label of an id counts.
        time: The time of a row of the logs.
        recount: Count inputs again in each run, while their newest row is at most so old, such as
            "45d", because labels may have come. The age counts from the newest row in the store.
            "all": count all inputs again, for labels that were corrected later. It may differ from
            run to run.
        forget: Drop the counts of files and tables that no longer exist in the places that `logs`
            names. Otherwise they are only listed.
        history: For how many days earlier versions of the store can be read. Then their files are
            deleted. None: as before; 30 days for a new store.
        storage_options: Credentials and settings for object storage, as in Polars. None: taken from
            the environment.

    Returns:
        A DataFrame with a row per file. Its columns are `input` (String), the path; `status`
        (Enum): `"counted"`, `"replaced"`, `"recounted"`, `"unchanged"`, `"removed"` (from a table,
        or the same file under another name), `"gone"` (it no longer exists) or `"forgotten"` (gone,
        and its counts are dropped); and `rows` (Int64; Float64 for float weights), how many rows
        the counts stand for.

    Score the store like the log: `PredictionLog.from_store(store).by(*keys)`.

    Raises:
        TypeError: A key or another column is no text, such as an expression.
        ValueError: The folder is not a store, or its counts are of other columns. `history` is
            below 1. `outcomes` without `recount`, or the other way round; an age without `time`.
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
    columns: dict[str, Any] = {"gold": gold, "pred": _listed(pred), "on": _listed(on) or None}
    columns |= {"weight": weight, "filter": filter, "latest": latest, "time": time}
    for text in chain(keys, *map(_listed, columns.values())):
        if not isinstance(text, str):
            raise TypeError(
                f"keep_counts takes names of columns, or SQL, got {text}: the store keeps the "
                "words, so that each run asks the same; write SQL, as in \"date_trunc('week', ts) "
                'AS week"'
            )
    from polars_mcc._inputs.log_from_files import LogOptions, TypedLog  # noqa: PLC0415 - few need it
    from polars_mcc._inputs.read_files import find_logs  # noqa: PLC0415 - as above
    from polars_mcc._store.count_and_commit import keep  # noqa: PLC0415 - as above

    inputs = find_logs([*map(str, _listed(logs))], storage_options, may_be_gone=forget)
    options = LogOptions(**columns, outcomes=[*map(str, _listed(outcomes))] or None)
    log = TypedLog(inputs, options, keys)
    return keep(log, str(store), forget=forget, history=history, recount=recount)


def _listed(given: Any) -> list[Any]:  # noqa: ANN401 - names, paths, or what is no name
    """One value or several, as a list; an empty list for None."""
    if given is None:
        return []
    return [given] if isinstance(given, (str, Path, pl.Expr)) else list(given)
