"""What `mkdocs build` does beside Markdown: runs the tutorials, lists the commands, takes in files outside docs/.

- A page of docs/tutorials/ is executed: its `sh` and `python` blocks run in order in one empty folder, and what they
  print is put below them. A block with a title is written to the file of that name instead. One that fails fails the
  build.
- docs/commands.md gets every command with its options, as Typer describes them.
- Pages link to files of the repository as GitHub wants it (`../results/demo.json`). Here such a file becomes part of
  the site: Python as a page with numbered lines, which a link `name` opens at its definition; the rest as it is.
"""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ICON = "src/shortlist/annotate/web/pages/static/icon.svg"
OWN_FILES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", ICON: "images/icon.svg"}
"""Files of the site that lie elsewhere in the repository: where people look for them, or where the app needs them."""
LINK = re.compile(r"(?<=\]\()(?:\.\./)+[^)#\s]+|(?<=src=\")(?:\.\./)+[^\"]+")
CODE_LINK = re.compile(r"\[`([\w.]+)`\]\(((?:\.\./)+[^)#\s]+\.py)\)")
BLOCK = re.compile(r"^```(sh|python)(?: title=\"([^\"]+)\")?\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the root of the repository, and every file outside docs/ that a page links to."""
    for source, uri in OWN_FILES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    pages = list(files.documentation_pages())
    linked = (_outside(page.src_uri, link) for page in pages for link in LINK.findall(page.content_string))
    for path in sorted({*filter(None, linked), *ROOT.glob("results/figures/*")}):
        if path.suffix == ".py":
            text = f'# {path.relative_to(ROOT)}\n\n```python linenums="1"\n{path.read_text(encoding="utf-8")}```\n'
            files.append(File.generated(config, _uri(path), content=text))
        else:
            files.append(File.generated(config, _uri(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Run a tutorial, list the commands; turn links out of docs/ into links inside the site."""
    uri = page.file.src_uri
    if uri.startswith("tutorials/"):
        markdown = _executed(markdown, uri)
    if uri == "commands.md":
        markdown += _commands()
    if uri.startswith("repository/"):
        return markdown  # code: nothing in it is a link
    markdown = CODE_LINK.sub(lambda found: _to_line(found, page, files), markdown)
    return LINK.sub(lambda found: _inside(found[0], uri), markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Make sure that a page of the API reference has every name of its facades."""
    for module in re.findall(r"^::: (shortlist[.\w]*)$", page.markdown or "", re.MULTILINE):
        names = getattr(importlib.import_module(module), "__all__", ())
        if missing := [name for name in names if f'id="{module}.{name}"' not in output]:
            raise PluginError(f"{page.file.src_uri}: {module}: {', '.join(missing)} not in it")
    return output


def _commands() -> str:
    """Every command as Markdown: its own part of the page, without the line on --help that each would repeat."""
    typer = [sys.executable, "-m", "typer", "shortlist.cli", "utils", "docs", "--name", "shortlist"]
    done = subprocess.run(typer, capture_output=True, text=True, check=True)
    parts = done.stdout[done.stdout.index("\n## ") :]
    return re.sub(r"^\* `--help`.*\n", "", parts, flags=re.MULTILINE)


def _outside(uri: str, link: str) -> Path | None:
    """The file of the repository that a link of a page means, if it is one outside docs/."""
    path = (ROOT / "docs" / uri).parent.joinpath(link).resolve()
    within = path.is_file() and ROOT in path.parents and ROOT / "docs" not in path.parents
    return path if within and str(path.relative_to(ROOT)) not in OWN_FILES else None


def _uri(path: Path) -> str:
    name = str(path.relative_to(ROOT))
    return f"repository/{name}.md" if name.endswith(".py") else f"repository/{name}"


def _inside(link: str, uri: str) -> str:
    path = _outside(uri, link)
    target = _uri(path) if path else OWN_FILES.get(link.rsplit("/", 1)[-1])
    # a link that leads nowhere is left as it is, and MkDocs complains of it
    return os.path.relpath(target, Path(uri).parent) if target else link


def _to_line(found: re.Match[str], page: Page, files: Files) -> str:
    name, link = found.groups()
    path = _outside(page.file.src_uri, link)
    file = files.get_file_from_path(_uri(path)) if path else None
    if path is None or file is None:
        return found[0]
    last = name.rsplit(".", 1)[-1]
    definition = re.compile(rf"^\s*(?:(?:async )?def|class) {last}\b|^{last}\b.*=")
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next((number for number, text in enumerate(lines, 1) if definition.match(text)), None)
    if line is None:
        raise PluginError(f"{page.file.src_uri}: no definition of {last} in {path.relative_to(ROOT)}")
    return f'<a href="{file.url_relative_to(page.file)}#__codelineno-0-{line}"><code>{name}</code></a>'


def _executed(markdown: str, uri: str) -> str:
    """The page with what its blocks print below them."""
    module = types.ModuleType("tutorial")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.modules[module.__name__] = module  # dataclasses look their module up
        sys.path.insert(0, folder)  # as Python does for a script in it
        try:
            return BLOCK.sub(lambda found: found[0] + _output(found, module, uri), markdown)
        finally:
            sys.path.remove(folder)
            del sys.modules[module.__name__]


def _output(found: re.Match[str], module: types.ModuleType, uri: str) -> str:
    language, title, code = found.groups()
    if title:
        Path(title).write_text(code, encoding="utf-8")
        return ""
    printed = _shell(code, uri) if language == "sh" else _python(code, module, uri)
    return f"\n```text\n{printed.rstrip()}\n```\n" if printed.strip() else ""


def _shell(code: str, uri: str) -> str:
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where `shortlist` is installed
    environment = {**os.environ, "PATH": beside, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(["sh", "-e"], input=code, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PluginError(f"{uri}: a block failed\n{code}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _python(code: str, module: types.ModuleType, uri: str) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, uri, "exec"), module.__dict__)
    except Exception as error:
        raise PluginError(f"{uri}: a block failed\n{code}\n{error!r}") from error
    return printed.getvalue()
