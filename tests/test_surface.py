"""The public surface: what a user may rely on changes only where a diff of `surface.txt` shows it.

`python tests/test_surface.py` writes that file again, where a change is wanted. In which version a
change may come is in `examples/guide/what_stays.md`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import difflib
import inspect
import io
import json
import math
import re
import sys
import tempfile
import textwrap
import tomllib
import types
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from test_names import FRAMES, PLAIN, Asked

import polars_mcc
from polars_mcc import PredictionLog, each, metric, plot
from polars_mcc._cli import outputs
from polars_mcc._cli.run_command import app, main

ROOT = Path(__file__).parents[1]
SURFACE = Path(__file__).with_name("surface.txt")
OF_DEVELOPERS = {"docs", "peers", "test", "test-engines"}
LABELS = {"integer": (1, 2), "Boolean": (False, True)}
EMPTY = inspect.Parameter.empty
MODULE = re.compile(r"\b[a-z_]+\.(?=[A-Z])")


def listed(*words: str) -> str:
    return textwrap.fill(" ".join(words), 98, initial_indent="  ", subsequent_indent="    ")


def names_and_signatures() -> Iterator[str]:
    for name in polars_mcc.__all__:
        thing = getattr(polars_mcc, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            yield f"{name}: {thing.__base__.__name__}"
        elif callable(thing):
            yield from signature(name, thing)
            for method in [m for m in getattr(thing, "__dict__", {}) if m[0] != "_"]:
                if callable(getattr(thing, method)):
                    yield from signature(f"{name}.{method}", getattr(thing, method))
    for module in (metric, plot):
        place = module.__name__.removeprefix("polars_mcc.")
        for name in module.__all__:
            yield from signature(f"{place}.{name}", getattr(module, name))
    frame = pl.DataFrame({"gold": [1], "pred": [1]})
    for kind in (frame, frame.lazy(), pl.col("pred"), frame["pred"]):
        yield f"{type(kind).__name__}.mcc: {type(kind.mcc).__name__}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    yield "extras"
    yield listed(*sorted(project["optional-dependencies"].keys() - OF_DEVELOPERS))


def signature(name: str, called) -> Iterator[str]:
    """A line for each parameter; the name of a Literal is replaced by its words."""
    scope = inspect.unwrap(called.__init__ if isinstance(called, type) else called).__globals__
    yield name
    before = None
    for parameter in inspect.signature(called).parameters.values():
        if "." in called.__qualname__ and parameter.name in {"self", "log"}:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            yield "  *"
        before = parameter.kind
        first, *others = MODULE.sub("", parameter.annotation).split(" | ")
        words = typing.get_args(scope.get(first))
        if words and all(isinstance(word, str) for word in words):
            first = " | ".join(map(repr, words))
        hint = " | ".join([first, *others])
        default = "" if parameter.default is EMPTY else f" = {parameter.default!r}"
        yield f"  {parameter.replace(annotation=EMPTY, default=EMPTY)}: {hint}{default}"


def metrics() -> Iterator[str]:
    known = polars_mcc.metrics().with_columns(sure=pl.col("no_interval") == "")
    for (counts, sure), some in known.group_by("from", "sure", maintain_order=True):
        yield f"from {counts}, {'with' if sure else 'without'} an interval"
        yield listed(*some["metric"])


def answers() -> Iterator[str]:
    """The columns of the answers of all verbs."""
    asked = Asked({name: name.removeprefix("Q") for name in PLAIN} | {"Qant": "ant", "Qbee": "bee"})
    log, halves = asked.log, asked.log(weight=pl.col("weight") / 2)
    late = asked.models(waiting=True)
    found = {name: call(asked) for name, call in FRAMES.items()}
    found |= {
        "by, float weights": halves.by("one", ci=0.9, metrics=["mcc", "tp"]),
        "by, labels that come later": late.by("one"),
        "compare, labels that come later": late.compare("one"),
        "contrast, expected": log.contrast("one", to="expected"),
        "counts, float weights": halves.counts("one"),
        "check, model": asked.models.check("one", no_worse_than="pred", ci=0.9),
        "check, gap": log.check("one", metric="accuracy", max_gap=1, ci=0.9),
        "worst, uncut": log.worst("one", "two", bins=None),
    }
    for kind, (low, high) in LABELS.items():
        of_pairs = pl.col("gold", "pred", "other")
        labels = of_pairs.replace_strict({"ant": low, "bee": high})
        of_kind = asked.frame.with_columns(labels).mcc(pred=["pred", "other"])
        found |= {
            f"by, {kind}": of_kind.by(each("one", "gold"), ci=0.9),
            f"counts, {kind}": of_kind.counts("one"),
            f"classes, {kind}": of_kind.classes("one"),
            f"confusion, {kind}": of_kind(pred="pred").confusion(),
            f"confusion, long, {kind}": of_kind.confusion(long=True),
            f"worst, {kind}": of_kind.worst("one", "two", verdicts=True),
            f"curve, {kind}": of_kind(pred=None, score="two", positive=high).curve(),
        }
    with tempfile.TemporaryDirectory() as folder:
        asked.frame.write_parquet(f"{folder}/log.parquet")
        found["keep_counts"] = polars_mcc.keep_counts(f"{folder}/log.parquet", f"{folder}/s", "one")
        found["counts of a store"] = PredictionLog.from_store(f"{folder}/s").counts("one").collect()
    found["metrics"] = polars_mcc.metrics()
    for name, answer in found.items():
        yield name
        yield from columns(answer)


def columns(answer: pl.DataFrame) -> Iterator[str]:
    """The columns in their order. Those of one dtype that follow each other share a line."""
    row, last = [], None
    for name, dtype in answer.schema.items():
        if row and dtype != last:
            yield listed(*row, "-", in_words(last))
            row = []
        row, last = [*row, name], dtype
    yield listed(*row, "-", in_words(last))


def in_words(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Enum):
        return f"Enum: {', '.join(dtype.categories)}"
    return type(dtype).__name__


def errors() -> Iterator[str]:
    log = pl.DataFrame({"gold": ["a", "b"], "pred": ["a", "a"], "n": [1, -1]}).mcc()
    calls = {
        "a column is missing": lambda: log.by("nothing"),
        "a key has the name of a column of the answer": lambda: log(gold="pred").by("n"),
        "labels cannot be compared": lambda: log(pred="n").score(),
        "there is no such option": lambda: log.by(nothing=1),
        "an option has no such value": lambda: log.by(ci=2),
        "there is no such metric": lambda: log.by(metrics="nothing"),
        "a metric needs a positive label": lambda: log.by(metrics="tpr"),
        "a metric needs a score": lambda: log.by(metrics="roc_auc"),
        "a weight is negative": lambda: log(weight="n").score(),
        "a weight is text": lambda: log(weight="gold").score(),
        "windows of a text": lambda: log.by(polars_mcc.trailing("gold", "2d")),
        "the log is no frame": lambda: PredictionLog(1),
        "a chart of a lazy answer": lambda: plot.slices(log.by("gold").lazy()),
        "a chart of another verb": lambda: plot.slices(pl.DataFrame({"a": [1]})),
        "a gate that fails": lambda: log.check(min=0.5),
        "a gate without a threshold": log.check,
        "no store": lambda: PredictionLog.from_store(Path(__file__).parent),
        "no file": lambda: polars_mcc.keep_counts("nothing.parquet", "nothing"),
    }
    of_users = ("builtins", "polars.exceptions", "polars_mcc")
    for name, call in calls.items():
        with pytest.raises(Exception, match=".") as raised:
            call()
        kind = next(one for one in raised.type.__mro__ if one.__module__ in of_users)
        yield f"{name}: {kind.__module__}.{kind.__name__}"
    failure = polars_mcc.CheckError("", pl.DataFrame({"verdict": ["fails"]}))
    yield f"attributes of a CheckError: {', '.join(sorted(vars(failure)))}"


def commands() -> Iterator[str]:
    """The options of each command, after those that all commands have which read a log."""
    found = {name: [*options(name)] for name in app}
    of_logs = [lines for lines in found.values() if lines]
    shared = [line for line in of_logs[0] if all(line in lines for lines in of_logs)]
    for name, lines in {"every command that reads a log": shared, **found}.items():
        yield name
        yield from [line for line in lines if lines is shared or line not in shared]


def options(command: str) -> Iterator[str]:
    """Each option with what it takes, and its default."""
    if command.startswith("-"):
        return
    asked = app[command].assemble_argument_collection(default_parameter=app.default_parameter)
    for argument in [one for one in asked if one.names != ("*",)]:
        default = argument.field_info.default
        shown = "" if default in (EMPTY, None) else f" = {default}"
        yield f"  {' '.join(argument.names)}: {taken(argument.hint)}{shown}"


def taken(hint) -> str:
    """A type, in words that no version of Python spells in another way."""
    inner = [one for one in typing.get_args(hint) if one not in (types.NoneType, ...)]
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(inner)
    if typing.get_origin(hint) in {list, tuple}:
        return f"{taken(inner[0])}, several"
    return " | ".join(map(taken, inner)) or hint.__name__


def exit_codes() -> Iterator[str]:
    log = str(ROOT / "data" / "digits.parquet")
    calls = {
        "an answer": ["score", log],
        "help": ["by", "--help"],
        "a gate that passes": ["check", log, "--min", "0.5"],
        "a gate that fails": ["check", log, "--min", "0.99"],
        "a gate that judges nothing": ["check", log, "--min", "0.5", "--min-n", "9999"],
        "no change, with --false-alarms": ["changes", log, "--time", "day", "--false-alarms", "1y"],
        "a missing column": ["by", log, "--by", "nothing"],
        "a missing file": ["by", "nothing.parquet"],
        "an unknown option": ["by", log, "--nothing"],
        "an unknown command": ["nothing"],
    }
    for name, arguments in calls.items():
        said = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                main(arguments)
                code = 0
            except SystemExit as ended:
                code = ended.code or 0
        yield f"{name}: {code}"


def files() -> Iterator[str]:
    """Each kind of value in each format that a program reads, and the report as JSON."""
    rows = pl.DataFrame(
        {
            "text": ["a, b", None],
            "n": [1, 2],
            "score": [0.5, math.nan],
            "limit": [math.inf, -math.inf],
            "is": [True, False],
            "day": [dt.date(2026, 3, 1), None],
            "at": [dt.datetime(2026, 3, 1, 12), None],
            "age": [dt.timedelta(seconds=90), None],
            "labels": [["a", "b"], None],
        }
    )
    for form in ("csv", "json", "ndjson"):
        yield form
        yield from textwrap.indent(outputs.as_bytes(rows, form).decode(), "  ").splitlines()
    asked = Asked({})
    report = json.loads(asked.timed.report(asked.one, asked.two, format="json", min_n=5))
    yield f"report, schema {report['schema']}"
    yield listed(*report)
    for name in ("verdict", "sections"):
        yield f"{name} of a report"
        yield listed(*dict.fromkeys(key for one in report[name] for key in one))
    yield "kinds of verdicts"
    yield listed(*dict.fromkeys(one["kind"] for one in report["verdict"]))
    for section in report["sections"]:
        yield f"rows of {section['id']}"
        yield listed(*dict.fromkeys(key for row in section["rows"] for key in row))


SECTIONS = [names_and_signatures, metrics, answers, errors, commands, exit_codes, files]


def surface(section) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polars_mcc.PredictionLogWarning)
        lines = [f"# {section.__name__.replace('_', ' ')}", *section()]
    return "\n".join(lines).splitlines()


@pytest.mark.parametrize("section", SECTIONS)
def test_the_public_surface_is_the_one_that_was_recorded(section):
    found = surface(section)
    recorded = SURFACE.read_text("utf-8").split("\n\n")[SECTIONS.index(section)].splitlines()
    changed = "\n".join(difflib.unified_diff(recorded, found, "recorded", "found", lineterm=""))
    assert not changed, f"python tests/test_surface.py records this:\n{changed}"


if __name__ == "__main__":
    parts = ("\n".join(surface(section)) for section in SECTIONS)
    SURFACE.write_text("\n\n".join(parts) + "\n", "utf-8")
    sys.stdout.write(f"the public surface is in {SURFACE}\n")
