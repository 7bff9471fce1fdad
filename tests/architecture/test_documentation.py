"""The examples of README.md and docs/ run: Python blocks and `crosshatch` commands, page by page, from top to bottom.

All blocks of a page share one namespace and one temporary folder. How to leave one out: see pages.py beside this file.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch

from crosshatch.cli import main
from tests.architecture.modules import ROOT
from tests.architecture.pages import Block, blocks, commands, pages

PAGES = pages(ROOT)
CONSOLE = {"console", "bash"}
# Spelled in one way only, so that no example escapes by its label.
MISSPELT = {"py": "python", "python3": "python", "pycon": "python", "sh": "console", "shell": "console"}
SHELL_ONLY = {"|", ">", ">>", "<", "&&", "||", ";", "&"}


def run_command(command: str, place: str) -> None:
    """Run one `crosshatch ...` line in the current folder.

    In this process, for torch is slow to import; and with one thread, for pytest already uses every core.
    """
    words = shlex.split(command, comments=True)
    assert not SHELL_ONLY.intersection(words), f"{place}: only a plain command can be tried: {command}"
    one_thread = ["--set", "run.threads=1"] if words[1:2] == ["train"] else []
    threads = torch.get_num_threads()
    try:
        with pytest.raises(SystemExit) as ended:
            main([*words[1:], *one_thread])
    finally:
        torch.set_num_threads(threads)
    assert ended.value.code == 0, f"{place}: `{command}` ended with {ended.value.code}, see what it printed"


def run_block(block: Block, namespace: dict[str, object], page: str) -> None:
    """Do what one block says, in the current folder."""
    place = f"{page}:{block.line}"
    assert block.language not in MISSPELT, f"{place}: call the block {MISSPELT.get(block.language)!r}"
    if block.not_run is not None:
        assert block.not_run, f"{place}: say why the block is not run"
        return
    if block.file is not None:
        path = Path(block.file)
        assert not path.is_absolute(), f"{place}: give a path below the page's folder"
        assert ".." not in path.parts, f"{place}: give a path below the page's folder"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        source = "\n" * (block.line - 1) + block.text  # so that a traceback names the page's line
        exec(compile(source, page, "exec"), namespace)
    elif block.language in CONSOLE:
        for command in commands(block.text):
            run_command(command, place)


def run_page(text: str, page: str) -> None:
    """Run all blocks of a page in the current folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        run_block(block, namespace, page)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES])
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix())


def test_blocks_share_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(
        "<!-- file: sub/a.toml -->\n```toml\nx = 2\n```\ntext\n"
        "```python\nfrom pathlib import Path\ny = Path('sub/a.toml').read_text()\n```\n"
        "- item\n  ```python\n  assert y == 'x = 2\\n'\n  Path('done').touch()\n  ```\n",
        "page.md",
    )
    assert (tmp_path / "done").exists()


def test_a_failure_names_the_page_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("# Title\n\n```python\nx = 0\n1 / x\n```\n", "page.md")
    last = caught.traceback[-1]
    assert (str(last.path).endswith("page.md"), last.lineno + 1) == (True, 5)


def test_a_block_may_be_left_out_with_a_reason_only() -> None:
    run_page("<!-- not run: needs a network -->\n\n```python\n1 / 0\n```\n", "page.md")
    with pytest.raises(AssertionError, match="say why"):
        run_page("<!-- not run: -->\n```python\n1 / 0\n```\n", "page.md")


def test_a_comment_counts_for_the_next_block_only() -> None:
    with pytest.raises(ZeroDivisionError):
        run_page("<!-- not run: slow -->\n```python\n1 / 0\n```\n```python\n1 / 0\n```\n", "page.md")


@pytest.mark.parametrize("text", ["```py\n1\n```", "```sh\ncrosshatch demo\n```", "```bash\ncrosshatch a | less\n```"])
def test_blocks_that_would_escape_are_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        run_page(text, "page.md")
