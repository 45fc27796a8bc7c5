"""Settings: who wins, where a value comes from, and what somebody else's project cannot do."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwen_tools import config
from qwen_tools.cli import main
from qwen_tools.commands.config import known_flags


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A user without settings, in a folder of a project."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in list(known_flags()):
        monkeypatch.delenv("QWEN_TOOLS_" + name.upper().replace("-", "_"), raising=False)
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    return tmp_path


def user(home: Path, text: str) -> Path:
    path = home / "config" / "qwen_tools" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def project(home: Path, text: str) -> Path:
    path = home / "project" / ".qwen_tools.toml"
    path.write_text(text, encoding="utf-8")
    return path


def shown(capsys) -> dict[str, tuple[object, str]]:
    capsys.readouterr()
    assert main(["config", "show", "--json"]) == 0
    return {key: (each["value"], each["from"]) for key, each in json.loads(capsys.readouterr().out).items()}


def error(capsys, *arguments: str) -> str:
    assert main(["config", *arguments]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    return told


def test_without_settings_all_is_default(home, capsys):
    settings = shown(capsys)
    assert settings["max-rounds"] == (8, "default")
    assert settings["approve"] == ("ask", "default")
    assert {source for _, source in settings.values()} == {"default"}


def test_each_layer_wins_over_the_one_before(home, capsys, monkeypatch):
    theirs = user(home, 'max-rounds = 2\nmax-new-tokens = 20\nguide = "off"\nmodel = "mine"\n')
    ours = project(home, 'max-new-tokens = 30\nguide = "on"\n')
    monkeypatch.setenv("QWEN_TOOLS_GUIDE", "off")
    settings = shown(capsys)
    assert settings["model"] == ("mine", str(theirs))
    assert settings["max-rounds"] == (2, str(theirs))
    assert settings["max-new-tokens"] == (30, str(ours))
    assert settings["guide"] == ("off", "QWEN_TOOLS_GUIDE")
    assert settings["dtype"] == ("auto", "default")


def test_flags_win_over_all_and_lists_are_replaced(home, monkeypatch):
    user(home, 'max-rounds = 2\noption = ["a=1", "b=2"]\nverbose = true\n')
    args = parsed("--max-rounds", "5")
    assert (args.max_rounds, args.option, args.verbose, args.guide) == (5, ["a=1", "b=2"], True, "on")
    assert parsed("--option", "c=3").option == ["c=3"]
    monkeypatch.setenv("QWEN_TOOLS_OPTION", "c=3 'd=4 5'")
    assert parsed().option == ["c=3", "d=4 5"]


def parsed(*arguments: str) -> argparse.Namespace:
    """The arguments of chat as it gets them."""
    from qwen_tools.commands import chat

    parser = argparse.ArgumentParser()
    chat.configure(parser)
    own = config.flags(parser)
    config.defer(own.values())
    args = parser.parse_args(arguments)
    config.fill(args, own, known_flags())
    return args


def test_every_flag_is_filled_with_its_default(home):
    from qwen_tools.commands import chat

    plain = argparse.ArgumentParser()
    chat.configure(plain)
    for arguments in ([], ["--approve", "all", "--no-log", "Hi"], ["--session", "x"]):
        assert vars(parsed(*arguments)) == vars(plain.parse_args(arguments))


def test_the_flags_are_the_keys(home, capsys):
    assert main(["config", "show"]) == 0
    keys = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"model", "device", "dtype", "tools", "approve", "max-rounds", "max-new-tokens", "guide", "no-log"} <= set(
        keys
    )
    assert not {"help", "json", "events", "continue", "session", "prompt"} & set(keys)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("max-round = 1", "unknown key 'max-round'; did you mean max-rounds?"),
        ("max_rounds = 1", "did you mean max-rounds?"),
        ("colour = 1", "'config show' lists the keys"),
        ("json = true", "--json holds for one call"),
        ("[chat]\nmodel = 1", "unknown key 'chat'"),
        ('max-rounds = "8"', "max-rounds must be a number, not '8'"),
        ("max-rounds = true", "max-rounds must be a number"),
        ("max-rounds = 2.5", "max-rounds must be a number"),
        ("max-rounds = [1]", "max-rounds must be a number"),
        ("max-rounds = 0", "max-rounds must be at least 1, not 0"),
        ("model = 3", "model must be text, not 3"),
        ("model = 1979-05-27", "model must be text"),
        ("guide = true", "guide must be one of on, off, not True"),
        ('approve = "sometimes"', "approve must be one of none, read, ask, all"),
        ("no-log = 1", "no-log must be true or false, not 1"),
        ('option = "a=1"', "option must be a list"),
        ("option = [1]", "option must be text, not 1"),
        ("model = ", "is not TOML"),
        (f"max-rounds = {'9' * 5000}", "is not TOML"),
        (f"max-rounds = 0x{'f' * 5000}", "max-rounds must be a number, not this"),
        (f"model = [{'1,' * 1000}]", "model must be text, not [1, 1"),
        (f"model = {'[' * 100_000}", "nested too deeply"),
        (f"# {'x' * 1_000_000}", "too large"),
        ('"a\\u001b[2J" = 1', "unknown key"),
        ('trusted-projects = "x"', "trusted-projects must be a list of folders"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(home, capsys, line, words):
    path = user(home, line + "\n")
    told = error(capsys, "show")
    assert str(path) in told
    assert words in told
    assert "\x1b" not in told
    assert main(["chat", "--model", "scripted:none", "Hi"]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_is_gone_has_no_project(home, capsys):
    Path.cwd().rmdir()
    assert shown(capsys)["max-rounds"] == (8, "default")


def test_what_is_not_utf_8_is_an_error(home, capsys):
    user(home, "").write_bytes(b'model = "\xff"')
    assert "is not TOML" in error(capsys)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("QWEN_TOOLS_MAX_ROUNDS", "many", "QWEN_TOOLS_MAX_ROUNDS: max-rounds must be a number, not 'many'"),
        ("QWEN_TOOLS_NO_LOG", "maybe", "must be 1 or 0, not 'maybe'"),
        ("QWEN_TOOLS_GUIDE", "yes", "must be one of on, off"),
        ("QWEN_TOOLS_OPTION", "'a", "no list of words"),
        ("QWEN_TOOLS_MODLE", "x", "did you mean QWEN_TOOLS_MODEL?"),
    ],
)
def test_a_mistake_in_the_environment_is_one_line(home, capsys, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    assert words in error(capsys)


def test_the_environment_may_hold_what_is_none_of_ours(home, capsys, monkeypatch):
    monkeypatch.setenv("QWEN_TOOLS_CACHE", "/tmp")
    monkeypatch.setenv("QWEN_TOOLS_MODEL", "")
    monkeypatch.setenv("QWEN_TOOLS_NO_LOG", "True")
    settings = shown(capsys)
    assert settings["model"] == (None, "default")
    assert settings["no-log"] == (True, "QWEN_TOOLS_NO_LOG")


def test_the_nearest_project_counts(home, capsys):
    project(home, "max-rounds = 3\n")
    near = home / "project" / "deep" / ".qwen_tools.toml"
    near.write_text("max-rounds = 4\n")
    assert shown(capsys)["max-rounds"] == (4, str(near))


DANGEROUS = 'approve = "all"\ntools = "evil.py"\nmodel = "openai:http://evil"\nno-log = true\nsystem = "Be brief."\n'


def test_somebody_elses_project_sets_words_and_nothing_that_acts(home, capsys):
    path = project(home, DANGEROUS)
    settings = shown(capsys)
    assert settings["system"] == ("Be brief.", str(path))
    for key in ("approve", "tools", "model", "no-log"):
        assert settings[key][1] == "default"
    assert main(["config", "show"]) == 0
    told = capsys.readouterr().err
    assert "approve, model, no-log, tools" in told
    assert f"add '{path.parent}' to trusted-projects" in told


def test_every_setting_that_is_not_known_to_be_harmless_is_refused(home, capsys):
    """A flag that is new is not a project's to set until somebody says so."""
    samples = {}
    for key, flag in known_flags().items():
        value = flag.action.choices[0] if flag.action.choices else 1 if flag.action.type else "x"
        samples[key] = "true" if flag.action.nargs == 0 else json.dumps(["x"] if flag.default == [] else value)
    path = project(home, "".join(f"{key} = {sample}\n" for key, sample in samples.items()))
    taken = {key for key, (_, source) in shown(capsys).items() if source == str(path)}
    assert taken <= {
        "guide", "max-new-tokens", "max-rounds", "option", "salvage", "system", "template", "thinking", "tool-choice",
    }  # fmt: skip
    assert {"system", "max-rounds"} <= taken


@pytest.mark.parametrize("line", ["colour = 1", 'max-rounds = "x"', "trusted-projects = ['.']"])
def test_a_mistake_in_a_project_is_one_too(home, capsys, line):
    path = project(home, line + "\n")
    assert str(path) in error(capsys)


def test_a_project_that_the_user_trusts_sets_all(home, capsys):
    path = project(home, DANGEROUS)
    user(home, f"trusted-projects = ['{home}/project/../project']\n")
    settings = shown(capsys)
    assert settings["tools"] == ("evil.py", str(path))
    assert settings["approve"] == ("all", str(path))
    user(home, f"trusted-projects = ['{home}', '{home}/project/deep']\n")  # neither above nor below
    assert shown(capsys)["tools"][1] == "default"


def test_the_paths_are_shown(home, capsys):
    assert main(["config", "path"]) == 0
    said = capsys.readouterr().out
    assert f"{home}/config/qwen_tools/config.toml  (not there)" in said
    assert "none: no .qwen_tools.toml" in said
    theirs, ours = user(home, ""), project(home, "")
    assert main(["config", "path", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"user": str(theirs), "project": str(ours)}


def test_chat_obeys_and_says_what_it_ignores(home):
    script = home / "script.json"
    script.write_text('["Hello."]')
    user(home, f"model = 'scripted:{script}'\nno-log = true\n")
    project(home, 'system = "Be brief."\nno-log = false\n')
    done = subprocess.run(
        [sys.executable, "-m", "qwen_tools", "chat", "--json", "Hi"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(config.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "ignored in" in done.stderr
    assert not (home / "data").exists()


def test_a_broken_file_does_not_hide_the_help(home, capsys):
    user(home, "broken")
    for arguments in (["--help"], ["chat", "--help"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 0
