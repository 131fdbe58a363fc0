"""The documentation as a web site: the README, the pages of this folder, charts, and every verb.

    pip install '.[docs]' && python examples/build_docs.py SITE

Text is that of README.md, `*.md` and docstrings; the charts are drawn now. Needs no network.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

import draw_charts
import pdoc
import pdoc.render

import polars_mcc

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#]+)\)")
PROMPTS = re.compile(r"^```python\n(?=>>> )", flags=re.MULTILINE)


def page_of(path: Path, pages: list[str], pictures: list[Path]) -> str:
    """The Markdown of a file, whose links lead to pages and pictures of the site, or nowhere."""

    def link(match: re.Match[str]) -> str:
        target = Path(match[2])
        if target.suffix == ".svg":
            pictures.append(path.parent / target)
            return f"[{match[1]}]({target.name})"
        return f"[{match[1]}]({target.stem}.html)" if target.stem in pages else match[1]

    return PROMPTS.sub("```pycon\n", LINK.sub(link, path.read_text("utf-8")))


def gallery() -> str:
    shown = [f"## {name}\n\n![{name}]({name}.svg)" for name in draw_charts.charts]
    code = Path(draw_charts.__file__).read_text("utf-8")
    return "\n\n".join(["# Charts", *shown, f"# The code that drew them\n\n```python\n{code}```"])


def main() -> None:
    if len(sys.argv) < 2:
        print("python examples/build_docs.py SITE; this draws the mcc of slices, and more")
        return
    site = Path(sys.argv[1])
    site.mkdir(exist_ok=True)
    texts = {path.stem: path for path in sorted((ROOT / "examples").glob("*.md"))}
    pages = [*texts, "charts"]
    pictures: list[Path] = []
    polars_mcc.__doc__ = page_of(ROOT / "README.md", pages, pictures)
    with tempfile.TemporaryDirectory() as folder:
        for name in pages:
            text = gallery() if name == "charts" else page_of(texts[name], pages, pictures)
            Path(folder, f"{name}.py").write_text(f"r'''{text}'''\n", "utf-8")
        modules = [Path(folder, f"{name}.py") for name in pages]
        pdoc.render.configure(docformat="google", search=True, show_source=False)
        pdoc.pdoc("polars_mcc", *modules, output_directory=site)
    for picture in pictures:
        shutil.copy(picture, site)
    for name, chart in draw_charts.charts.items():
        chart.save(site / f"{name}.svg")
    print(f"{len(list(site.rglob('*.html')))} pages: open {site / 'polars_mcc.html'}")


if __name__ == "__main__":
    main()
