"""Check what the wheel and the sdist in a folder hold.

    python .ci/check_distributions.py FOLDER [TAG]

The wheel has the files of the package that git lists, and its metadata. The sdist has all that
git lists. Each link that PyPI shows leads out of the repository, or to a file of this version.
"""

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path


def check(what: str, found: set[str], wanted: set[str]) -> None:
    if found != wanted:
        missing, more = sorted(wanted - found), sorted(found - wanted)
        sys.exit(f"{what}: missing are {missing}, not wanted are {more}")


folder, *tag = sys.argv[1:]
[wheel] = Path(folder).glob("*.whl")
[sdist] = Path(folder).glob("*.tar.gz")
# .ci/run checks files that are not committed yet, too.
listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
listed = {*subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()}

with tarfile.open(sdist) as packed:
    check(sdist.name, {name.partition("/")[2] for name in packed.getnames()}, listed | {"PKG-INFO"})

with zipfile.ZipFile(wheel) as packed:
    [info] = {name.partition("/")[0] for name in packed.namelist() if ".dist-info/" in name}
    metadata = message_from_bytes(packed.read(f"{info}/METADATA"))
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    package = {name for name in listed if name.startswith("polars_mcc/")}
    check(wheel.name, {*packed.namelist()}, package | {f"{info}/{name}" for name in about})

tag_of_version = f"v{metadata['Version']}"
if tag not in ([], [tag_of_version]):
    sys.exit(f"{wheel.name}: its tag is {tag_of_version}, not {tag[0]}")

urls = dict(url.split(", ") for url in metadata.get_all("Project-URL"))
repository = urls["Repository"]
raw = repository.replace("//github.com/", "//raw.githubusercontent.com/")
shown = (f"{repository}/blob/{tag_of_version}/", f"{raw}/{tag_of_version}/")
there = listed | {str(parent) for name in listed for parent in Path(name).parents}
readme = str(metadata.get_payload())
links = [*re.findall(r"\]\(([^)#]*)", readme), *re.findall(r'(?:href|src)="([^"#]*)', readme)]
for link in links:
    path = link.removeprefix(shown[0]).removeprefix(shown[1])
    of_version = link.startswith(shown) and path in there
    if not of_version and (link.startswith(repository) or not link.startswith("https://")):
        sys.exit(f"{wheel.name}: a link of the README leads nowhere: {link}")
print(f"{wheel.name}: {len(package)} files; {sdist.name}: {len(listed)}; {len(links)} links")
