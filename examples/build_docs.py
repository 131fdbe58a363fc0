"""The documentation as a web site: a guide, the reference, and a search that needs no network.

    pip install '.[plot]' --group docs && python examples/build_docs.py SITE

The pages are README.md, the Markdown of this folder, and the docstrings. Links are relative paths
that work on GitHub too. On the site, a link to a script leads to a page with the script. A link
whose text is a public name, such as [`by`](../polars_mcc/_verbs/by_and_score.py), leads to the
reference. A page that NAVIGATION lacks is an error, and so is a dead link or a dead anchor.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from operator import attrgetter
from pathlib import Path
from textwrap import dedent, indent

from sphinx.application import Sphinx
from sphinx.util.inspect import signature, stringify_signature

import polars_mcc
from polars_mcc import PredictionLog, plot

ROOT = Path(__file__).resolve().parent.parent
NAVIGATION = {  # the first heading of a page is its title
    "Use it": """guide/score_your_slices guide/how_sure guide/find_failing_slices
        guide/compare_two_models guide/watch_over_time guide/gate_a_release guide/choose_metrics
        guide/scores_of_probabilities guide/choose_a_threshold guide/pictures_and_reports
        guide/labels_that_come_later
        guide/command_line""",
    "At scale": "guide/larger_than_a_machine guide/nightly_counts guide/every_night guide/how_fast",
    "Trust it": "guide/exactness_and_edges guide/moving_here",
    "Reference": """../reference/log ../reference/functions ../reference/plot metrics glossary
        draw_charts.py ../data/README""",
    "Contribute": "guide/how_it_works guide/benchmarks ../CHANGELOG",
}
SETTINGS = {
    "project": "polars_mcc",
    "html_title": f"polars_mcc {polars_mcc.__version__}",
    "html_theme": "furo",
    "extensions": ["myst_parser", "sphinx_copybutton"],
    "copybutton_prompt_text": r">>> |\.\.\. |\$ ",
    "copybutton_prompt_is_regexp": True,
    "myst_enable_extensions": ["colon_fence", "fieldlist"],
    "myst_heading_anchors": 4,
    "highlight_language": "text",
    "suppress_warnings": ["misc.highlighting_failure"],
    "smartquotes": False,  # -- begins an option
    "add_module_names": False,
    "python_maximum_signature_line_length": 60,
    "toc_object_entries_show_parents": "hide",
    "html_copy_source": False,
    "html_show_copyright": False,
}
NOT_TEXT = {".svg", ".png", ".ipynb", ".parquet"}
FIELDS = {"Args": "param", "Attributes": "ivar", "Raises": "raises"}
CODE_OR_LINK = re.compile(
    r"^ *(?P<fence>`{3,}).*?^ *(?P=fence)$|`[^`\n]+`"
    r"|\[(?P<text>[^\[\]]*)\]\((?!\w+:|#)(?P<path>[^)#\s]+)(?P<anchor>[^)\s]*)\)",
    flags=re.MULTILINE | re.DOTALL,
)
SECTION = re.compile(r"^([A-Z][\w ]*):\n((?:    .*\n|\n)+)", flags=re.MULTILINE)
ITEM = re.compile(r"^(\*{0,2}[\w.]+): ", flags=re.MULTILINE)
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", flags=re.MULTILINE)
QUALIFIER = re.compile(r"~?\b(?:\w+\.)+(?=[A-Z])")
MODULE = "```{py:currentmodule} polars_mcc\n```"

verbs = [name for name in vars(PredictionLog) if not name.startswith("_")]
functions = [name for name in polars_mcc.__all__ if name not in {"PredictionLog", "plot"}]
public = {name: f"plot.{name}" for name in plot.__all__}
public |= {name: name for name in polars_mcc.__all__}
public |= {name: f"PredictionLog.{name}" for name in verbs}


def reference(text: str, name: str) -> str:
    return f"{{py:obj}}`{text} <polars_mcc.{public[name]}>`"


def write(folder: Path, page: str, text: str) -> None:
    """Write a page for Sphinx, and the pictures and scripts that its links lead to."""

    def link(match: re.Match[str]) -> str:
        if match["path"] is None:
            return match[0]
        target = Path(os.path.normpath(ROOT / Path(page).parent / match["path"]))
        name = match["text"].strip("`()").rpartition(".")[2]
        if not target.exists():
            return match[0]  # Sphinx says where it is.
        if name in public and ROOT / "polars_mcc" in target.parents:
            return reference(match["text"].strip("`"), name)
        path = target.relative_to(ROOT).as_posix()
        if target.suffix in NOT_TEXT:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, folder / path)
        elif target.suffix != ".md":
            path = write_text(folder, path)
        path = os.path.relpath("index.md" if path == "README.md" else path, Path(page).parent)
        return f"[{match['text']}]({path}{match['anchor']})"

    to = folder / ("index.md" if page == "README.md" else page)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(CODE_OR_LINK.sub(link, text), "utf-8")


def write_text(folder: Path, path: str, above: str = "") -> str:
    """Write a page with the text of a script, or with the names in a folder."""
    target, page = ROOT / path, folder / f"{path}.md"
    if not page.exists():
        names = "\n".join(sorted(f.name for f in target.iterdir())) if target.is_dir() else ""
        fence = "`" * 9  # A script may have three.
        above = above or f"---\norphan: true\nnosearch: true\n---\n\n# `{path}`\n"
        code = f"{target.suffix[1:] or 'sh'}\n{names or target.read_text('utf-8')}"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"{above}\n{fence}{code}\n{fence}\n", "utf-8")
    return f"{path}.md"


def docstring(thing: object) -> str:
    """The docstring of a public thing, with sections as Sphinx takes them, and links to names."""

    def section(match: re.Match[str]) -> str:
        title, body = match[1], dedent(match[2]).strip()
        if title in FIELDS:
            return ITEM.sub(rf":{FIELDS[title]} \1: ", body) + "\n\n"
        if title == "Command line":
            commands = body.replace("\n\n", "\n")
            body = f"```sh\n{commands}\n```"
        if title == "Returns":
            return f":returns: {indent(body, '    ').strip()}\n\n"
        return f":::{{rubric}} {title}\n:::\n\n{body}\n\n"

    def link(match: re.Match[str]) -> str:
        is_option = match[1] in {"score", "metrics"} and not match[2]
        is_name = match[1] in public and not is_option
        return reference(match[1] + match[2], match[1]) if is_name else match[0]

    text = inspect.cleandoc("The version." if isinstance(thing, str) else thing.__doc__ or "")
    text = re.sub(r"`(\w+)((?:\(\))?)`", link, SECTION.sub(section, f"{text}\n"))
    return DOCTEST.sub(r"```python\n\g<0>\n```", text)


def entry(name: str, kind: str = "function") -> str:
    """The signature and the docstring of a public name, and of its methods."""
    thing = called = attrgetter(name)(polars_mcc)
    if not callable(thing):
        return f"::::{{py:data}} {name}\n:value: {thing!r}\n\n{docstring(thing)}\n::::\n"
    about, methods = docstring(thing), []
    if isinstance(thing, type):
        kind = "exception" if issubclass(thing, Exception) else "class"
        called = thing.__init__
        about += docstring(called)
        if thing is not PredictionLog:
            methods = [m for m in vars(thing) if m[0] != "_" and callable(getattr(thing, m))]
    has_self = kind != "function" and inspect.isfunction(called)
    takes = signature(called, has_self, type_aliases={"OtherFrame": "OtherFrame"})
    shown = QUALIFIER.sub("", stringify_signature(takes, show_return_annotation=called is thing))
    shown = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", shown)
    parts = [f"::::{{py:{kind}}} {name}{shown}", about, "::::"]
    return "\n\n".join([*parts, *(entry(f"{name}.{m}", "method") for m in methods)])


def listed(names: list[str]) -> str:
    """A line for each public name: the first of its docstring."""
    lines = {name: docstring(attrgetter(public[name])(polars_mcc)).split("\n")[0] for name in names}
    return "\n".join(f"- {reference(name, name)}: {line}" for name, line in lines.items())


def toctree(*lines: str) -> str:
    return "\n".join(["", "", "```{toctree}", ":hidden:", *lines, "```", ""])


def write_reference(folder: Path) -> None:
    def page(name: str, *parts: str) -> None:
        write(folder, f"reference/{name}.md", "\n\n".join(parts))

    log = [entry("PredictionLog"), "## Verbs", listed(verbs), toctree("", *verbs)]
    page("log", "# PredictionLog", MODULE, *log)
    for verb in verbs:
        page(verb, f"# {verb}", MODULE, entry(public[verb], "method"))
    page("functions", "# Functions and classes", MODULE, listed(functions), *map(entry, functions))
    charts = [entry(f"plot.{name}") for name in plot.__all__]
    page("plot", "# polars_mcc.plot", MODULE, docstring(plot), *charts)


def write_charts(folder: Path) -> None:
    script, to = "examples/draw_charts.py", folder / "examples/charts"
    to.parent.mkdir(parents=True)
    command = [sys.executable, ROOT / script, to]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own script
    shown = [f"## {c.stem}\n\n![{c.stem}](charts/{c.name})\n" for c in sorted(to.iterdir())]
    write_text(folder, script, "\n".join(["# Charts\n", *shown, "## The code\n"]))


def main() -> None:
    if len(sys.argv) < 2:
        print("python examples/build_docs.py SITE; this draws the mcc of slices, and more")
        return
    site = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "pages")
        write_charts(folder)
        write_reference(folder)
        for file in ["CHANGELOG.md", "data/README.md", *(ROOT / "examples").rglob("*.md")]:
            path = (ROOT / file).relative_to(ROOT).as_posix()
            write(folder, path, (ROOT / path).read_text("utf-8"))
        front = (ROOT / "README.md").read_text("utf-8")
        for caption, names in NAVIGATION.items():
            paths = [os.path.normpath(f"examples/{name}") for name in names.split()]
            front += toctree(f":caption: {caption}", "", *paths)
        write(folder, "README.md", front)
        read = Path(temporary, "read")
        app = Sphinx(folder, None, site, read, "html", SETTINGS, status=None, warningiserror=True)
        app.build()
    if app.statuscode:
        sys.exit("the pages have errors, which are listed above")
    print(f"{len(list(site.rglob('*.html')))} pages: open {site / 'index.html'}")


if __name__ == "__main__":
    main()
