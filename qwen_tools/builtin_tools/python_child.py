"""What the ``python`` tool starts: ``python -I python_child.py BYTES`` runs the code on stdin within its limits.

It imports nothing of the package. As at Python's prompt, a last line that is an expression is printed.
"""

import ast
import io
import linecache
import sys
import traceback

LARGEST_FILE = 100_000_000


def limit(memory: int) -> None:
    """Limits that the code cannot raise again."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for kind, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):  # the system's own limit is lower, or it knows none
            continue


def main() -> int:
    """Run stdin; returns the exit code."""
    code = sys.stdin.read()
    sys.stdin = io.StringIO()
    limit(int(sys.argv[1]))
    sys.argv = ["code.py"]
    linecache.cache["code.py"] = (len(code), None, code.splitlines(keepends=True), "code.py")
    space = {"__name__": "__main__"}
    try:
        tree = ast.parse(code, "code.py")
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, "code.py", "exec"), space)  # noqa: S102 - running this code is the purpose
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "code.py", "eval"), space)  # noqa: S307 - the same
            if value is not None:
                print(repr(value))
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the code does is its result
        # From the code's own frame on: what stands here is nobody's concern.
        steps = traceback.extract_tb(error.__traceback__)
        own = [step for step in steps if step.filename != __file__ and not step.filename.endswith("ast.py")]
        error = error.with_traceback(None)
        text = "".join(traceback.format_list(own)) + "".join(traceback.format_exception_only(type(error), error))
        sys.stdout.flush()
        sys.stderr.write(text)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
