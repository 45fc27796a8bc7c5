"""MCP servers, real ones: made with the SDK, over stdio and streamable HTTP, and some that misbehave."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qwen_tools import mcp
from qwen_tools.errors import UserError
from qwen_tools.executor import execute
from qwen_tools.messages import ToolCall
from qwen_tools.tool_sources import load

SERVER = str(Path(__file__).with_name("mcp_server.py"))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """The SDK gives a server two seconds to leave by itself; the last test leaves it at that."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.3)


def config(folder: Path, **servers: dict) -> str:
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return str(path)


def script(folder: Path, body: str) -> dict:
    """A server that is a few lines of Python, and knows nothing of the SDK."""
    path = folder / "script.py"
    path.write_text("import json, os, sys, time\n" + body)
    return {"command": sys.executable, "args": [str(path)]}


# Answers as an old server does, and leaves tools/call to the test.
BY_HAND = """
def answer(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        answer(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                         "serverInfo": {"name": "by hand", "version": "1"}})
    elif request["method"] == "tools/list":
        answer(request, LISTED)
    elif request["method"] == "tools/call":
        CALLED
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                          "error": {"code": -32601, "message": "unknown method"}}), flush=True)
"""


def by_hand(folder: Path, called: str, schema: object = None, before: str = "") -> dict:
    listed = {"tools": [{"name": "do", "inputSchema": {"type": "object"} if schema is None else schema}]}
    return script(folder, before + BY_HAND.replace("LISTED", repr(listed)).replace("CALLED", called))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def stdio(tmp_path_factory):
    """The tools of a server over stdio."""
    path = config(
        tmp_path_factory.mktemp("stdio"),
        test={"command": sys.executable, "args": [SERVER], "env": {"FROM_FILE": "值"}, "trust_read_only": True},
    )
    yield load(path)
    mcp.close()


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    """The tools of the same server over streamable HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        path = config(
            tmp_path_factory.mktemp("http"), test={"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": {}}
        )
        yield load(path)
        mcp.close()
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=["stdio", "http"])
def toolbox(request):
    return request.getfixturevalue(request.param)


def call(toolbox, tool: str, /, timeout: float = 20, **arguments):
    return execute(ToolCall(tool, arguments), toolbox, approve=lambda call, tool: True, timeout=timeout)


def test_its_tools_are_ours_with_their_schemas(toolbox):
    weather = toolbox.get("weather")
    assert weather.description == "天气预报。The weather of a city."
    assert weather.parameters["required"] == ["city"]
    assert weather.parameters["properties"]["days"]["default"] == 1
    assert weather.origin.endswith("servers.json: test")


def test_a_call_goes_there_and_its_text_comes_back(toolbox):
    result = call(toolbox, "weather", city="北京", days=2)
    assert (result.ok, result.content) == (True, "北京：晴，2 天")


def test_the_arguments_are_checked_before_the_server_sees_them(toolbox):
    assert call(toolbox, "weather", days=2).kind == "schema"


def test_structured_results_and_images_are_text_with_marks(toolbox):
    assert json.loads(call(toolbox, "record", name="甲").content) == {"name": "甲", "marks": [1, 2]}
    assert call(toolbox, "picture").content == "here it is\n[image: image/png, 8 bytes]"


def test_a_tool_that_fails_is_a_result(toolbox):
    result = call(toolbox, "fail", reason="no such city")
    assert (result.ok, result.kind) == (False, "tool_error")
    assert "fail" in result.content


def test_a_tool_that_hangs_is_stopped_and_the_server_goes_on(toolbox):
    began = time.monotonic()
    assert call(toolbox, "hang", timeout=0.5).kind == "timeout"
    assert time.monotonic() - began < 5
    assert call(toolbox, "weather", city="巴黎").ok


def test_the_hint_is_believed_only_where_the_file_says_so(stdio, http):
    assert stdio.get("weather").read_only
    assert not stdio.get("record").read_only
    assert not http.get("weather").read_only


def test_the_environment_is_the_files_and_not_ours(stdio, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    assert call(stdio, "environment", name="FROM_FILE").content == "值"
    assert call(stdio, "environment", name="SECRET_OF_OURS").content == "unset"


def test_what_is_no_message_between_messages_is_passed_over(stdio, capfd):
    assert call(stdio, "garbage").content == "and go on"
    assert call(stdio, "weather", city="a").ok
    assert capfd.readouterr() == ("", "")


def test_a_server_that_exits_is_a_result_and_is_started_again(stdio, capfd):
    first = int(call(stdio, "process").content)
    gone = call(stdio, "leave")
    assert (gone.ok, gone.kind) == (False, "tool_error")
    assert "it has gone (it wrote: goodbye," in gone.content
    second = int(call(stdio, "process").content)
    assert second != first
    assert not alive(first)
    assert capfd.readouterr() == ("", "")  # what it writes on stderr does not reach the screen


@pytest.mark.parametrize(
    ("called", "said"),
    [
        ("answer(request, {'content': 'no list'})", "not what the protocol says"),
        ("answer(request, [])", "do"),
        ("print('{]', flush=True); sys.stderr.write('oh no\\n'); sys.exit(1)", "it wrote: oh no"),
        ("answer(request, {'content': [], 'isError': True})", "not why"),
    ],
)
def test_a_malformed_answer_is_a_result(tmp_path, called, said):
    toolbox = load(config(tmp_path, odd=by_hand(tmp_path, called)))
    result = call(toolbox, "do", timeout=1)
    assert not result.ok
    assert said in result.content
    mcp.close()


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"command": "/nowhere/at/all"}, "no program '/nowhere/at/all'"),
        ({"command": sys.executable, "cwd": "/nowhere/at/all"}, "no folder '/nowhere/at/all'"),
        ({"command": str(Path(__file__))}, "Permission denied"),
        ({"url": "http://127.0.0.1:9/mcp"}, "connect"),
        ("sys.stderr.write('missing key\\n'); sys.exit(2)", r"has gone \(it wrote: missing key\)"),
        ("time.sleep(100)", "did not answer within 1 seconds"),
        ("print('hello', flush=True); time.sleep(100)", "did not answer within 1 seconds"),
    ],
)
def test_a_server_that_does_not_start_is_said_in_one_line(tmp_path, monkeypatch, server, said):
    monkeypatch.setattr(mcp, "START_SECONDS", 1 if "sleep" in str(server) else 10)
    entry = server if isinstance(server, dict) else script(tmp_path, server)
    with pytest.raises(UserError, match=f"MCP server 'odd': .*{said}") as refusal:
        load(config(tmp_path, odd=entry))
    assert refusal.value.code == 3
    assert "\n" not in str(refusal.value)


def test_a_broken_schema_is_said(tmp_path):
    with pytest.raises(UserError, match="'do' has a broken schema"):
        load(config(tmp_path, odd=by_hand(tmp_path, "pass", {"type": "object", "properties": {"a": {"type": 7}}})))
    mcp.close()


def test_servers_of_one_name_in_two_files_are_two(tmp_path):
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(config(tmp_path / name, s=by_hand(tmp_path / name, f"answer(request, {answered(name)})")))
    toolbox = load(paths)
    assert toolbox.names() == ["s__do", "s2__do"]
    assert [call(toolbox, name).content for name in toolbox.names()] == ["a", "b"]
    mcp.close()


def answered(text: str) -> dict:
    return {"content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "mcpServers must be"),
        ({"a": 1}, "must be an object"),
        ({"a": {}}, "needs a command or a url"),
        ({"a": {"command": "x", "url": "http://y"}}, "needs a command or a url"),
        ({"a": {"command": ["x"]}}, "command must be a text"),
        ({"a": {"command": "x", "args": "y"}}, "args must be a list"),
        ({"a": {"command": "x", "env": {"A": 1}}}, "env must be an object"),
        ({"a": {"url": "ftp://x"}}, "must begin with http"),
        ({"a": {"type": "sse", "url": "http://x"}}, "sse"),
        ({"a": {"command": "${NOT_SET_ANYWHERE}"}}, "NOT_SET_ANYWHERE"),
        ({"a": {"command": "x", "trust_read_only": "yes"}}, "true or false"),
    ],
)
def test_a_broken_file_is_said_in_one_line(tmp_path, value, said):
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": value}))
    with pytest.raises(UserError, match=said) as refusal:
        load(str(path))
    assert str(refusal.value).startswith(str(path))
    assert refusal.value.code == 2


def test_a_file_as_other_programs_write_it(monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    servers = mcp.read_config(
        {
            "mcpServers": {
                "fs": {"command": "npx", "args": ["-y", "server", "${HERE:-/tmp}"], "autoApprove": ["x"]},
                "web": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
                "off": {"command": "y", "disabled": True},
            }
        },
        "f.json",
    )
    assert [server.name for server in servers] == ["fs", "web"]
    assert servers[0].command == ("npx", "-y", "server", "/tmp")
    assert servers[1].headers == {"Authorization": "Bearer secret"}
    assert not servers[0].trust_read_only
    assert "secret" not in repr(servers)


def test_no_process_is_left_when_the_program_ends(tmp_path):
    """Also of a server that hears neither the end of its input nor SIGTERM."""
    pid_file = tmp_path / "pid"
    stubborn = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
    )
    entry = by_hand(tmp_path, "pass", before=stubborn)
    with Path(entry["args"][0]).open("a") as file:
        file.write("time.sleep(100)\n")
    code = "import sys; from qwen_tools.tool_sources import load; print(load(sys.argv[1]).names())"
    command = [sys.executable, "-c", code, config(tmp_path, odd=entry)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['do']\n", "")
    assert not alive(int(pid_file.read_text()))
