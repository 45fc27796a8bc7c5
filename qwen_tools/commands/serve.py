"""``serve``: an OpenAI- and Anthropic-compatible server for one local model, and a page to chat with it."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket

from ..engines import Engine, open_engine
from ..errors import UserError
from ..families import read_options
from ..server.host import is_local
from ..template import template_difference
from .terminal import say

KEY_VARIABLE = "QWEN_TOOLS_API_KEY"


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of serve."""
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--model",
        help="hub id, folder, .gguf file, embedded (the default where it is installed), scripted:FILE, or "
        "completions:URL[#MODEL] for a server of raw prompts",
    )
    model.add_argument("--family", help="how prompts are written; found from the model unless given")
    model.add_argument("--device", default="auto", help="auto, cpu or cuda[:N]")
    model.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")
    model.add_argument(
        "--quantize",
        choices=("auto", "none", "int8", "int4"),
        default="auto",
        help="weights in fewer bits: int8 on a CPU, int8 or int4 on CUDA (auto: int8 for the embedded models on a CPU)",
    )
    network = parser.add_argument_group("the network")
    network.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: this machine only)")
    network.add_argument("--port", type=_port, default=8000, help="the port (default 8000; 0 takes a free one)")
    network.add_argument(
        "--api-key",
        help=f"what clients must send; a host that others can reach needs one. ${KEY_VARIABLE} keeps it out of sight",
    )
    network.add_argument(
        "--cors-origin",
        action="append",
        type=_origin,
        default=[],
        metavar="ORIGIN",
        help="let pages of this origin (https://app.example) use the server, or with * those of any; repeatable",
    )
    network.add_argument("--access-log", action="store_true", help="write a line for each request (address and path)")
    asking = parser.add_argument_group("the answers")
    asking.add_argument("--guide", choices=("on", "off"), default="on", help="a grammar keeps calls valid (default on)")
    asking.add_argument(
        "--max-new-tokens", type=_positive, default=4096, help="tokens at most in one answer (default 4096)"
    )
    asking.add_argument("--max-seconds", type=_positive, default=600, help="time at most for one answer (default 600)")
    asking.add_argument("--max-waiting", type=_positive, default=32, help="requests that may wait (default 32)")
    asking.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="a render option of the family; repeatable"
    )
    asking.add_argument(
        "--template",
        choices=("family", "model"),
        default="family",
        help="who writes the prompt: we, or the model's own",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until somebody stops it; returns the exit code."""
    key = (args.api_key or os.environ.get(KEY_VARIABLE) or "").strip() or None
    if key is None and not is_local(args.host):
        raise UserError(f"--host {args.host} lets others in: set a key for them with --api-key or ${KEY_VARIABLE}")
    if args.model and args.model.startswith(("openai:", "anthropic:")):
        raise UserError("serve answers with raw prompts of its own; that chat API can be asked directly")
    try:
        import uvicorn

        from ..server.answer import Serving
        from ..server.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UserError("serve needs the extra of that name: pip install 'qwen-tools[serve]'") from error
    options = read_options(args.option)
    listening = listen(args.host, args.port)
    with contextlib.closing(listening):
        engine = open_engine(
            args.model, family=args.family, device=args.device, dtype=args.dtype, quantize=args.quantize
        )
        _warn(engine, args.template, options)
        serving = Serving(
            engine,
            guided=args.guide == "on",
            options=options,
            template=args.template,
            max_new_tokens=args.max_new_tokens,
            seconds=args.max_seconds,
        )
        application = app(serving, places=args.max_waiting, key=key, origins=args.cors_origin)
        config = uvicorn.Config(
            application,
            log_level="info" if args.access_log else "critical",
            access_log=args.access_log,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        host = f"[{args.host}]" if ":" in args.host else args.host
        say(f"{engine.name} ({engine.family}) is at http://{host}:{listening.getsockname()[1]}  (Ctrl-C stops it)")
        uvicorn.Server(config).run(sockets=[listening])
    return 0


def listen(host: str, port: int) -> socket.socket:
    """The socket; made before the model is loaded, since a port that is taken should not cost a minute.

    Raises UserError when the address is not to be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol left open, asyncio would not turn off Nagle's algorithm, and every token be 40 ms late.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        message = f"cannot listen on {host}, port {port}: {error.strerror or error}; choose another --host or --port"
        raise UserError(message) from error
    return listening


def _warn(engine: Engine, template: str, options: dict[str, object]) -> None:
    if engine.tokenizer is not None and template == "family":
        difference = template_difference(engine.tokenizer, engine.family, **options)
        if difference:
            say(f"the model's own chat template writes prompts differently ({difference}); --template model uses it")


def _origin(text: str) -> str:
    """As browsers write it: lower case, no slash at the end."""
    origin = text.strip().lower().rstrip("/")
    scheme, mark, rest = origin.partition("://")
    if origin != "*" and not (scheme and mark and rest and "/" not in rest):
        raise argparse.ArgumentTypeError("must be an origin such as https://app.example, or *")
    return origin


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError("must be from 0 to 65535")
    return number
