"""Messages of commands say what to type; a text of the user is never changed."""

from __future__ import annotations

import re
import shlex

import polars as pl
import pytest
from runner import invoke
from support import first

REFUSED = {
    "contrast": "--by country",
    "gaps": "--by country",
    "by --long": "--by country",
    "by --method wald": "--ci 0.95",
    "by --metric ppv": "--positive fraud",
    "by --pred no --score k": None,
    "by --by 'k AS mcc'": "--by 'mcc AS mcc_key'",
    "check --by k": "--min 0.6",
    "check --by k --min 0.1 --metric fnr --positive 1": "--max 0.1",
    "compare": "--pred old --pred new",
    "contrast --by k --to nothing": "or a slice, as country=US, got 'nothing'",
    "contrast --by k --to j=1": "--to j=1 is not a slice of the keys 'k'",
    "contrast --by k --to k=9": "no row of the log is in the slice k = 9",
    "contrast --by k --to expected --ratio": "--ratio does not support --to expected: leave one",
    "gaps --by 'trailing(k, 2)'": "gaps does not support trailing(...)",
    "gaps --by k --metric tp --positive 1": "metric 'tp' counts rows, and large slices have more",
    "changes --by k": "a column of the log, as in --time timestamp",
    "gaps --by k --within k": "'k' is a key and also in within",
    "contrast --by k --cluster k": "contrast does not support cluster: it assumes independent rows",
    "counts --sample-weight k": "sums of squared weights; leave it out",
    "confusion --labels 0 --labels 0": "--labels 0 --labels 0 lists a label twice",
    "check --min 2": "--min 2.0 is outside the range of mcc",
    "by --pred text": "cast one to the other's dtype, as in gold::VARCHAR",
    "by --pred 'a-float'": """cut the score at a threshold, as in "a-float" >= 0.5""",
    "by --pred 'k::DOUBLE'": "cut the score at a threshold, as in (k::DOUBLE) >= 0.5",
    "by --pred text --gold lists": "make both lists, or neither",
    "by --weight 'temp min=3'": "but 'temp min=3' is String; cast it first",
    "curve --score k": "--positive 1",
    "confusion --by 'k AS gold'": None,
    "by --filter 'k=1 AND gold=1 AND'": "filter 'k=1 AND gold=1 AND'",
    "drift --before 'k < 1' --after 'k >= 1'": "no row of the log is before: its condition must",
    "by --by k --by k": "rename one with AS",
}
"""Commands that are refused, with what their message says to type."""


@pytest.mark.parametrize("line", first(14, REFUSED))
def test_a_message_says_what_to_type(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"k": [1, 2, 3], "gold": [0, 1, 0], "pred": [0, 1, 1]})
    log = log.with_columns(
        lists=pl.concat_list("gold"),
        **{"a-float": 0.5},
        **dict.fromkeys(("text", "temp min=3"), pl.lit("a")),
    )
    log.write_parquet("log.parquet")
    verb, *typed = shlex.split(line)
    done = invoke(verb, "log.parquet", *typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert (REFUSED[line] or "") in done.stderr
    told = done.stderr.replace("'temp min=3'", "")
    assert not re.search(r"pl\.|\.mcc|=True|\{|\(\)|\bci=|min=", told)
