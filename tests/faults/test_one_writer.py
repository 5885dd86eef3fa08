"""Nothing but `onlooker.base.files` opens a file for writing: read off the source, so that no writer slips by."""

import ast
from pathlib import Path

import pytest

import onlooker

SOURCE = Path(onlooker.__file__).parent

ALLOWED = {
    "base/files.py": "the writer itself, and locks: each is the file itself that others look at",
    "evaluation/peak_memory.py": "a switch of the system's under /proc",
    "__main__.py": "closed streams are opened to nowhere, and a pipe is heard that a child process writes to",
    "formats/spool.py": "copies of what is not a file here, in a temporary folder that is deleted with the log",
    "clusters/messages.py": "a folder for the sockets of a cluster of our own, removed with it",
}

TO_A_FILE = {"ParquetWriter", "CSVWriter", "output_stream", "savefig", "savez", "TextIOWrapper"}
"""Calls that also take a path: here they are given an open file."""

METHODS = {
    *("write_text", "write_bytes", "touch", "rename", "symlink_to", "hardlink_to", "tofile", "to_csv", "to_json"),
    *("to_parquet", "to_feather", "write_csv", "write_parquet", "write_feather", "imsave", "savetxt", "memmap"),
    *("save_npz", "savez_compressed", "create_memory_map"),
}

FUNCTIONS = {
    "os": {"open", "fdopen", "rename", "renames", "replace", "link", "symlink", "truncate", "mkfifo", "mknod", "write"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move"},
    "np": {"save"},
    "pq": {"write_table", "write_metadata", "write_to_dataset"},
    "pc": {"write_csv"},
    "tempfile": {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory"},
}
"""By the name that a module has here."""

OPENERS = {
    ("", "open"),
    ("io", "open"),
    ("gzip", "open"),
    ("bz2", "open"),
    ("lzma", "open"),
    ("zipfile", "ZipFile"),
} | {
    ("pa", "OSFile"),
    ("gzip", "GzipFile"),
}
"""Whose second argument says what for."""


def called(call: ast.Call) -> tuple[str, str]:
    """Module or object, and name, of what is called."""
    if isinstance(call.func, ast.Name):
        return "", call.func.id
    if isinstance(call.func, ast.Attribute):
        owner = call.func.value
        return (owner.id if isinstance(owner, ast.Name) else "?"), call.func.attr
    return "?", "?"


def is_open_file(argument: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether an argument is a file that the function was given, or one in memory."""
    if not isinstance(argument, ast.Name):
        return False
    given = [one for one in (*function.args.args, *function.args.kwonlyargs) if one.arg == argument.id]
    if given:
        return given[0].annotation is not None and ast.unparse(given[0].annotation) == "BinaryIO"
    values = [
        node.value if isinstance(node, ast.Assign) else node.context_expr
        for node in ast.walk(function)
        if (isinstance(node, ast.Assign) and any(ast.unparse(at) == argument.id for at in node.targets))
        or (isinstance(node, ast.withitem) and node.optional_vars and ast.unparse(node.optional_vars) == argument.id)
    ]
    in_memory = {"io.BytesIO()", "io.StringIO()"}
    return bool(values) and all(ast.unparse(value) in in_memory or wraps(value, function) for value in values)


def wraps(value: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether a value is an open file, or one that compresses into it."""
    if isinstance(value, ast.IfExp):
        return wraps(value.body, function) and wraps(value.orelse, function)
    if isinstance(value, ast.Call) and called(value) == ("gzip", "GzipFile"):
        files = [word.value for word in value.keywords if word.arg == "fileobj"]
        return len(files) == 1 and is_open_file(files[0], function)
    if isinstance(value, ast.Call) and called(value) == ("pa", "output_stream"):
        return is_open_file(value.args[0], function)
    return is_open_file(value, function)


def opens_to_write(mode: ast.expr | None) -> bool:
    """Whether a mode is one for writing, or may be."""
    if mode is None:
        return False
    return not isinstance(mode, ast.Constant) or bool(set(str(mode.value)) & set("wax+"))


def writes(call: ast.Call, function: ast.FunctionDef | None) -> bool:
    """Whether a call may put a file into place by itself."""
    owner, name = called(call)
    words = {word.arg: word.value for word in call.keywords}
    if (owner, name) in OPENERS:
        wrapped = name == "GzipFile" and function is not None and wraps(call, function)
        return not wrapped and opens_to_write(words.get("mode", call.args[1] if len(call.args) > 1 else None))
    if name in FUNCTIONS.get(owner, ()):
        return True
    if name == "open":
        # Many things can be opened: a path is by a mode.
        mode = words.get("mode", call.args[0] if call.args else None)
        return isinstance(mode, ast.Constant) and opens_to_write(mode)
    if name in TO_A_FILE:
        return not call.args or function is None or not is_open_file(call.args[0], function)
    return isinstance(call.func, ast.Attribute) and name in METHODS


def found_in(source: str) -> list[int]:
    """Lines that write a file by themselves."""
    tree = ast.parse(source)
    inside = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            # Outer functions come first, so the innermost one stays.
            inside |= dict.fromkeys(ast.walk(function), function)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(call.lineno for call in calls if writes(call, inside.get(call)))


MODULES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_only_the_atomic_writer_writes(module):
    lines = found_in((SOURCE / module).read_text(encoding="utf-8"))
    if module in ALLOWED:
        assert lines, "nothing is written here any more: take it off the list"
    else:
        assert not lines, f"{module}, lines {lines}: write through onlooker.base.files"


@pytest.mark.parametrize(
    "line",
    [
        'open(path, "w")',
        'open(path, mode="ab")',
        "open(path, mode)",
        'path.open("x")',
        'io.open(path, "r+")',
        'gzip.open(path, "wt")',
        'path.write_text("a")',
        'Path(path).write_bytes(b"a")',
        "os.open(path, os.O_WRONLY)",
        "os.replace(path, other)",
        "shutil.move(path, other)",
        'np.save("a.npy", values)',
        "np.savez(path, a=values)",
        "pq.write_table(table, path)",
        "pq.ParquetWriter(path, schema)",
        "pa.output_stream(str(path))",
        'figure.savefig("a.png")',
        "frame.to_csv(path)",
        'gzip.GzipFile(path, "wb")',
        'pa.OSFile(str(path), "w")',
        "with pa.output_stream(str(path)) as stream: pass",
    ],
)
def test_what_writes_is_seen(line):
    assert found_in(f"def f(path: Path, file: BinaryIO):\n    {line}") == [2]


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        'open(path, "rb")',
        "path.open()",
        'text.replace("a", "b")',
        "write_text(path, text)",
        "np.savez(file, a=values)",
        "pq.ParquetWriter(file, schema)",
        'pa.output_stream(file, compression="gzip")',
        "buffer = io.BytesIO(); figure.savefig(buffer)",
        'gzip.GzipFile("", "wb", fileobj=file)',
        "pc.open_csv(path)",
        "pa.OSFile(str(path))",
        "with pa.output_stream(file) as stream: pc.CSVWriter(stream, schema)",
    ],
)
def test_what_does_not_write_is_let_through(line):
    assert found_in(f"def f(path: Path, file: BinaryIO):\n    {line}") == []
