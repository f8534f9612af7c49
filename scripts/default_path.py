"""List the source files that a default `Model::fit` and `predict` execute.

    cargo build -p bayespc --example default_fit
    python3 scripts/default_path.py > scripts/default_path.txt

A file is listed if the program executes an instruction that the line table gives to one of its lines, inlined
functions included; a file that only declares types is not. Breakpoints stand at all lines of our files, and
the first that is hit takes away the others of its file: seconds, where callgrind, which lists the same, takes
minutes. Needs Linux on x86-64 and gdb, which reads the line table.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/examples/default_fit"
HEADING = re.compile(r"symtab: (\S+)")
ROW = re.compile(r"\d+ +(\d+|END) +0x([0-9a-f]+)")

BREAKPOINT = b"\xcc"
TRACEME, PEEKUSER, POKEUSER, CONT, SETOPTIONS = 0, 3, 6, 7, 0x4200
TRACECLONE, EXITKILL, ALL_THREADS = 1 << 3, 1 << 20, 1 << 30
"""Numbers of <sys/ptrace.h>, and __WALL of <sys/wait.h>."""
RIP = 16 * 8
"""Where the instruction pointer is among the registers."""


def can_trace() -> bool:
    """Return whether this system can do it."""
    return platform.system() == "Linux" and platform.machine() == "x86_64" and bool(shutil.which("gdb"))


def line_table(program: Path) -> dict[int, str]:
    """Return every address to which the line table gives a file of our crates, with the file."""
    commands = ("maint expand-symtabs crates/.*/src/", "maint info line-table crates/.*/src/")
    call = ["gdb", "-nx", "-batch", *(word for command in commands for word in ("-ex", command)), program]
    files: dict[int, str] = {}
    source = None
    for line in subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines():
        if heading := HEADING.match(line):
            path = Path(heading[1])
            source = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else None
        elif source and (row := ROW.match(line)):
            address = int(row[2], 16)
            if row[1] not in ("0", "END"):
                files[address] = source
            elif files.get(address) == source:
                del files[address]  # The row before is empty.
    return files


def ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    """Call ptrace(2)."""
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 4
    ctypes.set_errno(0)
    result = call(request, pid, address, data)
    if ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def start(program: Path) -> int:
    """Start the program and stop it before its first instruction."""
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ptrace(TRACEME, 0)
            # Two threads on every machine, as one alone has less to do.
            os.execve(program, [str(program)], {**os.environ, "RAYON_NUM_THREADS": "2"})
        finally:
            os._exit(127)
    os.waitpid(pid, 0)
    ptrace(SETOPTIONS, pid, 0, TRACECLONE | EXITKILL)
    return pid


def in_memory(program: Path, pid: int, files: dict[int, str]) -> dict[int, str]:
    """Return where the addresses are in the process, without functions that the linker has left out."""
    maps = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if str(program) in line]
    first = int(maps[0].split("-")[0], 16)
    text = next(line.split()[0] for line in maps if " r-xp " in line)
    low, high = (int(end, 16) for end in text.split("-"))
    return {first + address: file for address, file in files.items() if low <= first + address < high}


def executed(program: Path) -> list[str]:
    """Run the program, and return the files of which it executes a line."""
    files = line_table(program)
    pid = start(program)
    files = in_memory(program, pid, files)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    code = {address: os.pread(memory, 1, address) for address in files}
    for address in files:
        os.pwrite(memory, BREAKPOINT, address)
    seen: set[str] = set()
    ptrace(CONT, pid)
    while True:
        thread, status = os.waitpid(-1, ALL_THREADS)
        if not os.WIFSTOPPED(status):
            if thread == pid:
                break
            continue
        stopped_by = os.WSTOPSIG(status)
        is_event = status >> 16 != 0
        if stopped_by == signal.SIGTRAP and not is_event:
            address = ptrace(PEEKUSER, thread, RIP) - 1
            file = files[address]
            # Another thread may have been here at the same time; then only the step back is left to do.
            for other in [a for a in files if files[a] == file] if file not in seen else []:
                os.pwrite(memory, code[other], other)
            seen.add(file)
            ptrace(POKEUSER, thread, RIP, address)
        # New threads begin with SIGSTOP, which is for us, as SIGTRAP is.
        ptrace(CONT, thread, 0, 0 if stopped_by in (signal.SIGTRAP, signal.SIGSTOP) else stopped_by)
    os.close(memory)
    if status:
        raise RuntimeError(f"{program} ended with status {status}")
    return sorted(seen)


if __name__ == "__main__":
    print("\n".join(executed(EXAMPLE)))
