"""The documentation as a web site: a guide, the reference, and a search that needs no network.

    pip install '.[plot]' --group docs && python examples/build_docs.py SITE

The pages are README.md, the Markdown of this folder, and the docstrings, which Sphinx' autodoc
reads. They go into SITE/VERSION, and SITE/stable is a copy of the newest version. Links are
relative paths that work on GitHub too. On the site, a link to a script leads to a page with the
script. A link whose text is a public name, such as [`by`](../polars_mcc/_verbs/by_and_score.py),
leads to the reference. A page that NAVIGATION lacks is an error, and so is a dead link or a dead
anchor.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from docutils.nodes import Element
from packaging.version import Version
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain, PyXRefRole
from sphinx.util.inspect import TypeAliasForwardRef

import polars_mcc
from polars_mcc import PredictionLog, metric, plot

ROOT = Path(__file__).resolve().parent.parent
NAVIGATION = {  # the first heading of a page is its title
    "Use it": """guide/score_your_slices guide/how_sure guide/find_failing_slices
        guide/compare_two_models guide/watch_over_time guide/gate_a_release guide/choose_metrics
        guide/scores_of_probabilities guide/choose_a_threshold guide/pictures_and_reports
        guide/labels_that_come_later
        guide/command_line""",
    "At scale": "guide/larger_than_a_machine guide/nightly_counts guide/every_night guide/how_fast",
    "Trust it": """guide/how_numbers_are_checked guide/exactness_and_edges guide/what_stays
        guide/moving_here""",
    "Reference": """../reference/log ../reference/functions ../reference/plot ../reference/metric
        metrics glossary draw_charts.py ../data/README""",
    "Contribute": "guide/how_it_works guide/benchmarks ../CHANGELOG",
}
SETTINGS = {
    "project": "polars_mcc",
    "html_title": f"polars_mcc {polars_mcc.__version__}",
    "html_theme": "furo",
    "extensions": [
        *("myst_parser", "sphinx_copybutton", "sphinx.ext.autodoc", "sphinx.ext.napoleon"),
        "sphinx.ext.autosummary",
    ],
    "autoclass_content": "both",
    "autodoc_member_order": "bysource",
    "autodoc_type_aliases": {"OtherFrame": "OtherFrame"},
    "autosummary_generate": False,
    "default_role": "py:name",
    "napoleon_use_ivar": True,
    "napoleon_custom_sections": [
        *("Intervals", "Labels for some rows", "Lazy logs", "Lists of labels", "Sets and windows"),
        *("Significance", "What the limits ignore"),
    ],
    "copybutton_prompt_text": r">>> |\.\.\. |\$ ",
    "copybutton_prompt_is_regexp": True,
    "myst_heading_anchors": 4,
    "highlight_language": "text",
    "suppress_warnings": ["misc.highlighting_failure"],
    "smartquotes": False,  # -- begins an option
    "add_module_names": False,
    "python_use_unqualified_type_names": True,
    "python_maximum_signature_line_length": 60,
    "toc_object_entries_show_parents": "hide",
    "html_copy_source": False,
    "html_show_copyright": False,
}
NOT_TEXT = {".svg", ".png", ".ipynb", ".parquet"}
CODE_OR_LINK = re.compile(
    r"^ *(?P<fence>`{3,}).*?^ *(?P=fence)$|`[^`\n]+`"
    r"|\[(?P<text>[^\[\]]*)\]\((?!\w+:|#)(?P<path>[^)#\s]+)(?P<anchor>[^)\s]*)\)",
    flags=re.MULTILINE | re.DOTALL,
)

VERBS = [name for name in vars(PredictionLog) if not name.startswith("_")]
public = {name: f"plot.{name}" for name in plot.__all__}
public |= {name: name for name in polars_mcc.__all__}
public |= {name: f"PredictionLog.{name}" for name in VERBS}


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


class Name(PyXRefRole):
    """What single backticks mean in docstrings: a public name leads to its entry."""

    def process_link(
        self,
        env: object,  # noqa: ARG002
        refnode: Element,
        has_explicit_title: bool,  # noqa: ARG002
        title: str,
        target: str,
    ) -> tuple[str, str]:
        refnode["py:module"], refnode["py:class"] = "polars_mcc", "PredictionLog"
        is_option = target in {"metric", "metrics", "plot", "score"}
        return title, "" if is_option else target


PythonDomain.roles["name"] = Name()
# In a union, an alias such as `OtherFrame` is shown as this.
TypeAliasForwardRef.__repr__ = lambda alias: alias.name


def toctree(*lines: str) -> str:
    return "\n".join(["", "", "```{toctree}", ":hidden:", *lines, "```", ""])


def write_reference(folder: Path) -> None:
    (folder / "reference").mkdir()

    def page(name: str, title: str, *blocks: str) -> None:
        head = f"{title}\n{'=' * len(title)}", ".. currentmodule:: polars_mcc"
        text = "\n\n".join([*head, *blocks, ""])
        (folder / f"reference/{name}.rst").write_text(text, "utf-8")

    def block(*lines: str) -> str:
        return "\n".join(lines).replace("\n", "\n   ")

    def listed(names: Iterable[str]) -> str:
        return block(".. autosummary::", ":nosignatures:", "", *names)

    def members(module: str, names: Sequence[str]) -> str:
        options = f":members: {', '.join(names)}", ""
        return block(f".. automodule:: {module}", *options, listed(names))

    verbs = listed(f"~PredictionLog.{verb}" for verb in VERBS)
    pages = block(".. toctree::", ":hidden:", "", *VERBS)
    page("log", "PredictionLog", ".. autoclass:: PredictionLog", ".. rubric:: Verbs", verbs, pages)
    for verb in VERBS:
        page(verb, verb, f".. automethod:: PredictionLog.{verb}")
    version = block(f".. py:data:: __version__\n:value: {polars_mcc.__version__}\n\nThe version.")
    functions = sorted({*polars_mcc.__all__} - {"PredictionLog", "__version__"})
    page("functions", "Functions and classes", members("polars_mcc", functions), version)
    page("plot", "polars_mcc.plot", members("polars_mcc.plot", plot.__all__))
    page("metric", "polars_mcc.metric", members("polars_mcc.metric", metric.__all__))


def write_charts(folder: Path) -> None:
    script, to = "examples/draw_charts.py", folder / "examples/charts"
    to.parent.mkdir(parents=True)
    command = [sys.executable, ROOT / script, to]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own script
    shown = [f"## {c.stem}\n\n![{c.stem}](charts/{c.name})\n" for c in sorted(to.iterdir())]
    write_text(folder, script, "\n".join(["# Charts\n", *shown, "## The code\n"]))


def lead_to_newest(site: Path) -> None:
    """Copy the newest version to `stable/`, where links and `index.html` lead."""
    versions = {Version(of.parent.name): of.parent for of in site.glob("[0-9]*/objects.inv")}
    newest = max(versions, key=lambda version: (not version.is_prerelease, version))
    shutil.rmtree(site / "stable", ignore_errors=True)
    shutil.copytree(versions[newest], site / "stable")
    to = '<meta charset="utf-8"><meta http-equiv="refresh" content="0; url=stable/index.html">'
    text = f'{to}<title>polars_mcc</title><a href="stable/index.html">polars_mcc</a>\n'
    (site / "index.html").write_text(text, "utf-8")


def main() -> None:
    if len(sys.argv) < 2:
        print("python examples/build_docs.py SITE; this draws the mcc of slices, and more")
        return
    site = Path(sys.argv[1]).resolve()
    built = site / polars_mcc.__version__
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
        app = Sphinx(folder, None, built, read, "html", SETTINGS, status=None, warningiserror=True)
        app.build()
    if app.statuscode:
        sys.exit("the pages have errors, which are listed above")
    lead_to_newest(site)
    print(f"{len(list(built.rglob('*.html')))} pages: open {site / 'index.html'}")


if __name__ == "__main__":
    main()
