"""The sets that are off unless asked for: files, docs, python, web_fetch."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import http.server
import json
import os
import re
import ssl
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools.builtin_tools import docs, web
from qwen_tools.errors import UserError
from qwen_tools.executor import execute
from qwen_tools.messages import ToolCall
from qwen_tools.tool_sources import load


def use(toolbox, tool: str, /, timeout: float = 30, **arguments):
    return execute(ToolCall(tool, arguments), toolbox, approve=lambda call, tool: True, timeout=timeout)


def test_they_are_off_unless_asked_for():
    assert not set(load(None).names()) & {"read_file", "search_documents", "python", "web_fetch"}


@pytest.mark.parametrize(
    ("selection", "asking"),
    [
        ("files", {"write_file", "edit_file"}),
        ("docs", set()),
        ("python", {"python"}),
        ("web_fetch", {"web_fetch"}),
    ],
)
def test_what_writes_runs_or_goes_out_asks(selection, asking):
    toolbox = load(selection)
    assert {tool.name for tool in toolbox if not tool.read_only} == asking


@pytest.mark.parametrize("selection", ["files:nowhere", "docs:nowhere", "python:x", "web_fetch:x"])
def test_a_wrong_argument_is_said(selection, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        load(selection)


# ---- files


@pytest.fixture
def root(tmp_path):
    """A folder, and beside it what must not be reached."""
    (tmp_path / "secret.txt").write_text("the secret\n")
    root = tmp_path / "root"
    (root / "课程").mkdir(parents=True)
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    (root / "课程" / "大纲.md").write_text("# 大纲\n期末考试占 40%。\n", encoding="utf-8")
    (root / "old.txt").write_bytes("简体中文，旧编码".encode("gb18030"))
    (root / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (root / "image.png").write_bytes(b"\x89PNG\0\0\0")
    return root


@pytest.fixture
def files(root):
    return load(f"files:{root}")


def test_listing(files, root):
    assert use(files, "list_directory").content.split("\n") == [
        "课程/", "dos.txt (13 bytes)", "image.png (7 bytes)", "notes.txt (14 bytes)", "old.txt (16 bytes)",
    ]  # fmt: skip
    assert use(files, "list_directory", path="课程").content == "大纲.md (32 bytes)"
    for at in range(300):
        (root / "课程" / f"{at}.txt").touch()
    assert use(files, "list_directory", path="课程").content.endswith("… and 101 more")


def test_reading(files):
    assert use(files, "read_file", path="notes.txt").content == "one\ntwo\nthree"
    assert use(files, "read_file", path="课程/大纲.md").content == "# 大纲\n期末考试占 40%。"
    assert use(files, "read_file", path="old.txt").content == "简体中文，旧编码"
    assert use(files, "read_file", path="dos.txt").content == "one\ntwo"
    assert use(files, "read_file", path="notes.txt", start_line=3).content == "three\n[lines 3-3 of 3]"


def test_a_long_file_is_read_in_parts_that_join(files, root):
    lines = [f"line {number} " + "x" * (number % 90) for number in range(1, 1001)]
    (root / "long.txt").write_text("\n".join(lines))
    seen, start = [], 1
    while start:
        *part, last = use(files, "read_file", path="long.txt", start_line=start).content.split("\n")
        assert len("\n".join(part)) <= 6000
        seen += part
        start = int(last.split("start_line ")[1].split()[0]) if "start_line" in last else 0
    assert seen == lines


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("image.png", "binary file (image/png, 7 bytes)"),
        ("none.txt", "there is no file none.txt"),
        ("课程", "is a folder"),
        (".", "is a folder"),
        ("../secret.txt", "outside of the folder"),
        ("/etc/passwd", "outside of the folder"),
        ("课程/../../secret.txt", "outside of the folder"),
        ("a\0b", "NUL"),
        ("x" * 5000, ""),
    ],
)
def test_what_cannot_be_read_is_said_briefly(files, path, said):
    result = use(files, "read_file", path=path)
    assert (result.ok, result.kind) == (False, "tool_error")
    assert said in result.content
    assert "the secret" not in result.content


def test_a_huge_file_and_a_fifo_are_refused_at_once(files, root):
    with (root / "huge.txt").open("wb") as file:
        file.truncate(50_000_000)
    assert "too large to read (50 MB)" in use(files, "read_file", path="huge.txt").content
    os.mkfifo(root / "pipe")
    assert "not a file" in use(files, "read_file", path="pipe", timeout=5).content


def test_links_that_lead_out_are_refused_and_those_inside_are_followed(files, root):
    (root / "out.txt").symlink_to("../secret.txt")
    (root / "up").symlink_to("..")
    (root / "round").symlink_to("round")
    (root / "in.txt").symlink_to("notes.txt")
    for path in ("out.txt", "up/secret.txt", "round"):
        assert not use(files, "read_file", path=path).ok
        assert not use(files, "write_file", path=path, content="x").ok
    assert (root.parent / "secret.txt").read_text() == "the secret\n"
    assert use(files, "read_file", path="in.txt").ok
    assert "secret" not in use(files, "search_files", query="secret", path=".").content.replace("'secret'", "")
    assert not use(files, "list_directory", path="up").ok


def test_a_link_that_is_put_in_after_the_check_is_refused(root, monkeypatch):
    """The race: the path is checked, and a moment later a folder of it is a link that leads out."""
    from qwen_tools.builtin_tools import folder

    inside = folder.Folder(str(root))
    found = inside.find("课程/大纲.md")
    target = root.parent / "elsewhere"
    target.mkdir()
    (target / "大纲.md").write_text("the secret")
    (root / "课程").rename(root / "moved")
    (root / "课程").symlink_to(target)
    with pytest.raises(ValueError, match="课程"):
        inside.read_text(found)
    with pytest.raises(ValueError, match="课程"):
        inside.write_text(found, folder.Text("x", "utf-8", "\n"))
    assert (target / "大纲.md").read_text() == "the secret"
    found = inside.find("notes.txt")
    (root / "notes.txt").unlink()
    (root / "notes.txt").symlink_to(root.parent / "secret.txt")
    with pytest.raises(ValueError, match="it is a link"):
        inside.read_bytes(found)
    with pytest.raises(ValueError, match="not a file"):
        inside.write_text(found, folder.Text("x", "utf-8", "\n"))


def test_searching(files, root):
    (root / ".hidden").write_text("期末")
    assert use(files, "search_files", query="期末").content == "课程/大纲.md:2: 期末考试占 40%。"
    assert use(files, "search_files", query="TWO").content == "dos.txt:2: two\nnotes.txt:2: two"
    assert use(files, "search_files", query="大纲", path="课程").content.split("\n")[0] == "课程/大纲.md"
    assert "nothing has" in use(files, "search_files", query="没有").content
    assert "no folder" in use(files, "search_files", query="x", path="none").content
    assert not use(files, "search_files", query=" ").ok
    (root / "many.txt").write_text("word\n" * 1000)
    many = use(files, "search_files", query="word").content.split("\n")
    assert len(many) == 41
    assert "there are more" in many[-1]


def test_writing_replaces_whole_files_and_makes_folders(files, root):
    (root / "notes.txt").chmod(0o600)
    assert use(files, "write_file", path="notes.txt", content="新\n").content == "replaced notes.txt (2 characters)"
    assert (root / "notes.txt").read_text(encoding="utf-8") == "新\n"
    assert (root / "notes.txt").stat().st_mode & 0o777 == 0o600
    assert use(files, "write_file", path="a/b/c.txt", content="x").content == "created a/b/c.txt (1 characters)"
    assert (root / "a/b/c.txt").read_text() == "x"
    for path in (".", "课程", "../x.txt", "/tmp/x-of-the-test"):
        assert not use(files, "write_file", path=path, content="x").ok
    assert sorted(path.name for path in root.parent.iterdir()) == ["root", "secret.txt"]
    assert not list(root.rglob("*.tmp"))


def test_editing_keeps_encoding_and_line_ends(files, root):
    assert use(files, "edit_file", path="dos.txt", old_text="one\ntwo", new_text="1\n2").content.endswith("line 1")
    assert (root / "dos.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"
    use(files, "edit_file", path="old.txt", old_text="旧", new_text="老")
    assert (root / "old.txt").read_bytes().decode("gb18030") == "简体中文，老编码"


@pytest.mark.parametrize(("old", "said"), [("four", "0 times"), ("o", "2 times"), ("", "is empty")])
def test_an_edit_must_be_clear(files, root, old, said):
    result = use(files, "edit_file", path="notes.txt", old_text=old, new_text="x")
    assert not result.ok
    assert said in result.content
    assert (root / "notes.txt").read_text() == "one\ntwo\nthree\n"


@given(st.lists(st.sampled_from(["..", ".", "a", "课程", "notes.txt", "", "/", "~", "out"]), max_size=8))
def test_no_path_leads_out(tmp_path_factory, parts):
    from qwen_tools.builtin_tools.folder import Folder

    root = tmp_path_factory.getbasetemp() / "fenced"
    if not root.exists():
        (root / "a").mkdir(parents=True)
        (root / "out").symlink_to("..")
    with contextlib.suppress(ValueError):
        assert Folder(str(root)).find("/".join(parts)).is_relative_to(root.resolve())


# ---- docs


@pytest.fixture
def site(tmp_path):
    """A course site."""
    (tmp_path / "syllabus.md").write_text(
        "# Algorithms\n\nWelcome.\n\n## Grading\n\nThe final exam counts 40 percent, homework 60 percent.\n\n"
        "## Schedule\n\nLectures are on Mondays. Graph algorithms come in week 5.\n",
        encoding="utf-8",
    )
    (tmp_path / "作业.md").write_text(
        "# 作业说明\n\n## 提交\n\n作业在周五晚上前交到课程网站。\n\n## 迟交\n\n迟交一天扣百分之十。下雨不是理由。\n",
        encoding="utf-8",
    )
    (tmp_path / "week").mkdir()
    (tmp_path / "week" / "1.txt").write_text("Sorting: quicksort and mergesort.\n快速排序的平均复杂度是 O(n log n)。\n")
    (tmp_path / "week" / "data.csv").write_text("not,a,document\n")
    return tmp_path


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("grading", "syllabus.md, line 5: Grading"),
        ("How much does the final exam count?", "syllabus.md, line 5: Grading"),
        ("graphs", "syllabus.md, line 9: Schedule"),  # stemmed
        ("迟交", "作业.md, line 7: 迟交"),
        ("迟交会扣多少分？", "作业.md, line 7: 迟交"),
        ("下雨", "作业.md, line 7: 迟交"),
        ("雨", "作业.md, line 7: 迟交"),
        ("周五", "作业.md, line 3: 提交"),
        ("作业什么时候提交", "作业.md, line 3: 提交"),
        ("复杂度", "week/1.txt, line 1: 1"),
        ("ＭＥＲＧＥＳＯＲＴ", "week/1.txt, line 1: 1"),
    ],
)
def test_the_best_section_stands_first(site, query, best):
    assert use(load(f"docs:{site}"), "search_documents", query=query).content.startswith(f"[1] {best}\n")


def test_references_are_for_the_person(site):
    result = use(load(f"docs:{site}"), "search_documents", query="迟交", limit=1)
    assert result.references == ("[1] 作业说明 › 迟交 (作业.md:7)",)
    assert result.references[0] not in result.content


@pytest.mark.parametrize(
    "query", ['"', "a OR b", "NEAR(x y)", "* ^ -", "title:x", "？！", "'); DROP TABLE terms", "\0"]
)
def test_any_text_can_be_searched_for(site, query):
    toolbox = load(f"docs:{site}")
    assert use(toolbox, "search_documents", query=query).ok
    assert use(toolbox, "search_documents", query="迟交").content.startswith("[1]")


@given(st.text(st.sampled_from("天气预报明日下雨abc 1。 \n"), max_size=30), st.data())
def test_a_piece_of_a_chinese_text_is_found_in_it(text, data):
    """Every two characters of a run are a term of the text, and the query for them matches."""
    runs = [run for run in re.findall("[天气预报明日下雨]+", text) if len(run) > 1]
    if runs:
        run = data.draw(st.sampled_from(runs))
        start = data.draw(st.integers(0, len(run) - 2))
        assert run[start : start + 2] in docs.terms(text)


def test_results_are_bounded(site):
    (site / "long.md").write_text("# Long\n\n" + ("graph theory and more of it. " * 200 + "\n\n") * 50)
    result = use(load(f"docs:{site}"), "search_documents", query="graph theory", limit=10)
    assert len(result.content) < 5000
    read = use(load(f"docs:{site}"), "read_document", path="long.md").content
    assert len(read) < 5200


def test_an_excerpt_holds_what_was_asked_for(site):
    (site / "long.md").write_text(
        "# Long\n\n" + "filler words here. " * 60 + "The needle is here. " + "more filler. " * 20
    )
    assert "needle" in use(load(f"docs:{site}"), "search_documents", query="needle").content


def test_changes_are_seen_at_the_next_search(site):
    toolbox = load(f"docs:{site}")
    assert "no document has" in use(toolbox, "search_documents", query="鲸鱼").content
    (site / "new.md").write_text("# 动物\n\n鲸鱼很大。\n")
    assert "new.md" in use(toolbox, "search_documents", query="鲸鱼").content
    (site / "new.md").write_text("# 动物\n\n大象也很大，而且会走路。\n")
    assert "no document has" in use(toolbox, "search_documents", query="鲸鱼").content
    (site / "new.md").unlink()
    assert "no document has" in use(toolbox, "search_documents", query="大象").content


def test_listing_and_reading(site):
    toolbox = load(f"docs:{site}")
    assert use(toolbox, "list_documents").content.split("\n") == [
        "syllabus.md: Algorithms",
        "week/1.txt: 1",
        "作业.md: 作业说明",
    ]
    read = use(toolbox, "read_document", path="作业.md", start_line=3)
    assert read.content.startswith("## 提交\n")
    assert read.references == ("作业.md:3",)
    assert "not a document" in use(toolbox, "read_document", path="week/data.csv").content
    assert "outside" in use(toolbox, "read_document", path="../x.md").content


def test_a_heading_in_a_code_block_is_none():
    text = "# A\ntext\n```\n# not a heading\n```\n## B\nmore"
    assert [(heading, line) for heading, line, _ in docs.sections(text)] == [("A", 1), ("B", 6)]


@given(st.text(st.sampled_from("#ab 中。\n`"), max_size=200))
def test_sections_hold_the_whole_text_once(text):
    joined = "".join(body for _, _, body in docs.sections(text))
    assert [c for c in joined if not c.isspace()] == [c for c in text if not c.isspace()]


# ---- python


@pytest.fixture(scope="module")
def python():
    return load("python")


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print('你好')", "你好"),
        ("x = 6\nx * 7", "42"),
        ("'text'", "'text'"),
        ("x = 1", "the code printed nothing; use print() to see a value"),
        ("", "the code printed nothing; use print() to see a value"),
        ("import sys; print('a'); sys.exit(3)", "a\n[exit code 3]"),
        ("def f(n):\n    return n if n < 2 else f(n-1) + f(n-2)\nf(10)", "55"),
        ("input()", "EOFError"),
        ("1/0", 'File "code.py", line 1, in <module>\n    1/0\n'),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("if", "SyntaxError"),
        ("x = 'a' * 10**11", "MemoryError"),
        ("import os; print('KEY' in os.environ, os.getcwd() == os.environ['HOME'])", "False True"),
        ("import qwen_tools_is_not_in_the_folder", "ModuleNotFoundError"),
    ],
)  # fmt: skip
def test_code_and_what_it_prints(python, monkeypatch, code, printed):
    monkeypatch.setenv("KEY", "secret")
    result = use(python, "python", code=code)
    assert result.ok
    assert printed in result.content
    assert "python_child" not in result.content


def test_code_is_asked_for(python):
    assert execute(ToolCall("python", {"code": "1"}), python).kind == "denied"


def is_gone(mark: str) -> bool:
    """Whether no process has the mark in its command line, within the moment that a kill takes."""
    for _ in range(100):
        found = False
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found = found or mark in path.read_text(errors="replace")
        if not found:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_nothing_is_left_running(python, monkeypatch):
    from qwen_tools.builtin_tools import python as module

    monkeypatch.setattr(module, "_SECONDS", 1.0)
    mark = f"mark-{os.getpid()}"
    sleep = f"'-c', 'import time; time.sleep(60)', '{mark}'"
    child = f"import subprocess, sys\nsubprocess.Popen([sys.executable, {sleep}])\n"
    began = time.monotonic()
    assert use(python, "python", code=child + "print('left')").content == "left"
    assert is_gone(mark)
    late = use(python, "python", code=child + "print('so far', flush=True)\nwhile True: pass")
    assert not late.ok
    assert "stopped after 1 seconds; it had printed: so far" in late.content
    assert is_gone(mark)
    # The executor's own limit cancels it, and it is ended too.
    assert use(python, "python", timeout=0.4, code=child + "while True: pass").kind == "timeout"
    assert is_gone(mark)
    assert time.monotonic() - began < 15


def test_endless_output_is_stopped(python):
    result = use(python, "python", code="while True: print('x' * 1000)")
    assert "stopped after 100000 bytes of output" in result.content
    assert len(result.full) < 2000


# ---- web_fetch


class Handler(http.server.BaseHTTPRequestHandler):
    """The pages by path."""

    def do_GET(self):
        status, headers, body = PAGES.get(self.path, (404, {}, b"<p>nothing here"))
        if callable(body):
            body = body(self)
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value.format(port=self.server.server_port))
        self.end_headers()
        with contextlib.suppress(OSError):
            if self.path == "/slow":
                for _ in range(100):
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(0.1)
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site_url():
    """A small web server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


HTML = "text/html; charset=utf-8"
PAGES = {
    "/": (200, {"Content-Type": HTML}, (
        "<html><head><title>课程</title><style>p {}</style><script>bad()</script></head><body><nav>menu</nav>"
        "<h1>欢迎 &amp; hello</h1><p>One\n two<br>three</p><ul><li>a<li>b</ul>"
        "<table><tr><td>1</td><td>2</td></tr></table>"
    ).encode()),
    "/gbk": (200, {"Content-Type": "text/html"}, '<meta charset="gb2312"><p>简体中文</p>'.encode("gbk")),
    "/zip": (200, {"Content-Type": HTML, "Content-Encoding": "gzip"}, gzip.compress("<p>压缩".encode())),
    "/bomb": (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress(b"x" * 50_000_000)),
    "/code": (200, {"Content-Type": HTML}, b"<p>a\n b</p><pre>def f():\n    return  1</pre><p>c"),
    "/json": (200, {"Content-Type": "application/json"}, b'{"a": 1}'),
    "/image": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
    "/long": (200, {"Content-Type": "text/plain"}, b"0123456789" * 1200),
    "/to": (302, {"Location": "/json"}, b""),
    "/round": (302, {"Location": "/round"}, b""),
    "/file": (302, {"Location": "file:///etc/passwd"}, b""),
    "/in": (302, {"Location": "http://localhost:{port}/json"}, b""),
    "/slow": (200, {"Content-Type": "text/plain"}, b""),
    "/%E8%AF%BE?q=%E5%A4%A9": (200, {"Content-Type": "text/plain"}, b"found"),
    "/host": (200, {"Content-Type": "text/plain"}, lambda handler: handler.headers["Host"].encode()),
}  # fmt: skip


@pytest.fixture(scope="module")
def private():
    return load("web_fetch:private")


def test_a_page_is_text(private, site_url):
    result = use(private, "web_fetch", url=site_url)
    assert result.content == "课程\n\n# 欢迎 & hello\n\nOne two\nthree\n\n- a\n- b\n\n| 1 | 2"
    assert result.references == (site_url,)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/gbk", "简体中文"),
        ("/zip", "压缩"),
        ("/json", '{"a": 1}'),
        ("/code", "a b\n\ndef f():\n    return  1\n\nc"),
        ("/to", '{"a": 1}'),
        ("/课?q=天", "found"),
        ("/%E8%AF%BE?q=%E5%A4%A9#part", "found"),
    ],
)
def test_pages_of_many_kinds(private, site_url, path, content):
    assert use(private, "web_fetch", url=site_url + path).content == content


def test_the_host_is_told_as_it_was_asked_for(private, site_url):
    assert use(private, "web_fetch", url=f"{site_url}/host").content == site_url.removeprefix("http://")


def test_a_long_page_is_read_in_parts(private, site_url):
    first = use(private, "web_fetch", url=f"{site_url}/long").content
    assert first.endswith("[characters 0-5000 of 12000; start 5000 reads on]")
    last = use(private, "web_fetch", url=f"{site_url}/long", start=10000).content
    assert last == "0123456789" * 200
    assert len(use(private, "web_fetch", url=f"{site_url}/bomb").content) < 6000


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("{}/nothing", "answered 404 Not Found: nothing here"),
        ("{}/image", "image/png, not text"),
        ("{}/round", "more than 5 redirects"),
        ("{}/file", "must begin with https"),
        ("file:///etc/passwd", "must begin with https"),
        ("ftp://example.com/", "must begin with https"),
        ("example.com", "must begin with https"),
        ("http://user:secret@example.com/", "no user name"),
        ("http://127.0.0.1:99999/", "not a web address"),
        ("http://127.0.0.1:1/", "cannot connect"),
        ("http://nowhere.invalid/", "there is no host"),
        ("http://[::1", "not a web address"),
        ("http://a..b/", ""),
        ("http://x/\r\nHost: evil", ""),
    ],
)
def test_what_cannot_be_fetched_is_said(private, site_url, url, said):
    result = use(private, "web_fetch", url=url.replace("{}", site_url))
    assert (result.ok, result.kind) == (False, "tool_error")
    assert said in result.content


def test_a_server_that_drips_is_cut_off(private, site_url, monkeypatch):
    monkeypatch.setattr(web, "_SECONDS", 0.5)
    began = time.monotonic()
    assert not use(private, "web_fetch", url=f"{site_url}/slow").ok
    assert time.monotonic() - began < 3


@pytest.fixture(scope="module")
def secure_url(site_url, tmp_path_factory):
    """The same pages over https, with a certificate for localhost alone that is trusted."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private_key = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private_key + certificate.public_bytes(serialization.Encoding.PEM))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(pem))
        yield f"https://localhost:{server.server_port}"
    server.shutdown()


def test_https_is_checked_against_the_name(private, secure_url, monkeypatch):
    assert use(private, "web_fetch", url=f"{secure_url}/json").content == '{"a": 1}'
    other = use(private, "web_fetch", url=f"{secure_url}/json".replace("localhost", "127.0.0.1"))
    assert "CERTIFICATE_VERIFY_FAILED" in other.content
    monkeypatch.setattr(web, "_SECONDS", 0.7)
    assert "did not answer within 0.7 seconds" in use(private, "web_fetch", url=f"{secure_url}/slow").content


def test_it_asks(site_url):
    assert execute(ToolCall("web_fetch", {"url": site_url}), load("web_fetch")).kind == "denied"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::ffff:127.0.0.1]",
     "2130706433", "0x7f.1", "[fe80::1]", "[fc00::1]", "100.64.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"],
)  # fmt: skip
def test_no_private_address_is_reached(host):
    result = use(load("web_fetch"), "web_fetch", url=f"http://{host}:9/")
    assert "not public" in result.content or "there is no host" in result.content


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_are_public(address):
    assert web.public(address)


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(site_url, monkeypatch):
    """DNS rebinding: a name that is public when it is checked and private when it is asked for again."""
    port = int(site_url.rpartition(":")[2])
    answers = iter([[(2, 1, 6, "", ("203.0.113.7", port))], [(2, 1, 6, "", ("127.0.0.1", port))]])
    monkeypatch.setattr(web.socket, "getaddrinfo", lambda *arguments, **more: next(answers))
    monkeypatch.setattr(web, "public", lambda address: not address.startswith("127."))
    reached = []

    class Socket(web.socket.socket):
        def connect(self, address):
            reached.append(address[0])
            raise OSError("not in a test")

    monkeypatch.setattr(web.socket, "socket", Socket)
    with pytest.raises(ValueError, match="cannot connect"):
        web.fetch(f"http://rebinding.example:{port}/")
    assert reached == ["203.0.113.7"]
    with pytest.raises(ValueError, match="not public"):  # the second answer
        web.fetch(f"http://rebinding.example:{port}/")
    assert reached == ["203.0.113.7"]


def test_a_redirect_to_a_private_address_is_refused(site_url, monkeypatch):
    """Only the first address counts as public here; it is the redirect that is refused."""
    monkeypatch.setattr(web, "public", lambda address: address == "127.0.0.1")
    assert json.loads(web.fetch(f"{site_url}/json").content) == {"a": 1}
    resolve = web.socket.getaddrinfo
    monkeypatch.setattr(
        web.socket,
        "getaddrinfo",
        lambda host, *rest, **more: resolve("127.0.0.2" if host == "localhost" else host, *rest, **more),
    )
    with pytest.raises(ValueError, match=r"127\.0\.0\.2, an address that is not public"):
        web.fetch(f"{site_url}/in")


def test_what_is_around_a_page_is_left_out_but_never_all_of_it():
    assert web.html_to_text("<nav>menu</nav><p>text<footer>us</footer>") == "text"
    assert web.html_to_text("<nav>menu<p>text") == "menu\n\ntext"
    assert web.html_to_text("<svg><svg>x</svg>y</svg>z<script>'</nav>'</script>") == "z"


@given(st.text(st.sampled_from("<>/ap div\n&amp;script\"'=!-中"), max_size=80))
def test_any_html_is_read(text):
    assert "\x00" not in web.html_to_text(text)
