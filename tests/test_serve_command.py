"""``serve`` as a person starts it: a process, its address on stderr, its end with Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from qwen_tools.cli import main


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(["Hello.", "Again."]))
    return f"scripted:{file}"


def start(*arguments, **environment) -> tuple[subprocess.Popen, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "qwen_tools", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found, line + process.stderr.read()
    return process, found.group()


def ask(url: str, **headers) -> dict:
    body = {"messages": [{"role": "user", "content": "A secret question"}]}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def stop(process: subprocess.Popen) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert process.returncode in (0, 130)
    return out, errors


def test_it_serves_until_it_is_stopped_and_writes_nothing_of_a_request(script):
    process, url = start("--model", script)
    assert ask(url)["choices"][0]["message"]["content"] == "Hello."
    with urllib.request.urlopen(url, timeout=20) as page:
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert b"<title>qwen_tools</title>" in page.read()
    assert stop(process) == ("", "")


def test_a_key_may_come_from_the_environment(script):
    process, url = start("--model", script, QWEN_TOOLS_API_KEY="sesame")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(url)
    assert ask(url, Authorization="Bearer sesame")["choices"][0]["finish_reason"] == "stop"
    stop(process)


def test_the_access_log_has_paths_and_nothing_of_what_was_said(script):
    process, url = start("--model", script, "--access-log")
    ask(url)
    out, errors = stop(process)
    assert "POST /v1/chat/completions" in out + errors
    assert "secret" not in out + errors
    assert "Hello" not in out + errors


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_others_are_let_in_only_with_a_key(host, capsys, monkeypatch):
    monkeypatch.delenv("QWEN_TOOLS_API_KEY", raising=False)
    assert main(["serve", "--host", host, "--model", "scripted:none"]) == 2
    assert "--api-key" in capsys.readouterr().err


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/path", "https://", ""])
def test_an_origin_that_no_browser_would_send_is_refused(origin, capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--cors-origin", origin, "--model", "scripted:none"])
    assert "must be an origin" in capsys.readouterr().err


def test_an_origin_may_be_written_as_a_person_does(script):
    process, url = start("--model", script, "--cors-origin", "https://App.example/")
    assert ask(url, Origin="https://app.example")["choices"][0]["message"]["content"] == "Hello."
    stop(process)


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--model", "no such model"]) == 2
    assert f"port {port}" in capsys.readouterr().err


def test_an_api_is_not_served_again(capsys):
    assert main(["serve", "--model", "openai:http://127.0.0.1:1#x"]) == 2
    assert "asked directly" in capsys.readouterr().err


def test_without_its_libraries_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", "--model", "scripted:none"]) == 2
    assert "qwen-tools[serve]" in capsys.readouterr().err
