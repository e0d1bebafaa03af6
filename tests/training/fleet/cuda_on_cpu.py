"""The CUDA kernels compiled for the CPU, where on_cpu.h runs them thread by thread."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from torch import Tensor

from shortlist.training.fleet.kernels import nvrtc

HERE = Path(__file__).parent
KERNELS = Path(nvrtc.__file__).parent
CALLS = {
    "conv": """extern "C" void run(int blocks, int runs, void** p, int x, int w, int y, int b, int a, int add, int M) {
        launch(blocks, runs, THREADS, [=] { conv((bf16*)p[0], (bf16*)p[1], (bf16*)p[2], (float*)p[3], (bf16*)p[4],
            (unsigned char*)p[5], (float*)p[6], (float*)p[7], (bf16*)p[8], x, w, y, b, a, add, M); }); }""",
    "conv_weight": """extern "C" void run(int blocks, int runs, void** p, int x, int d, int g, int b, int M) {
        launch(blocks, runs, THREADS, [=] { conv_weight((bf16*)p[0], (bf16*)p[1], (float*)p[2], (bf16*)p[3],
            (bf16*)p[4], (float*)p[5], (float*)p[6], (float*)p[7], x, d, g, b, M); }); }""",
    "first": """extern "C" void run(int blocks, int runs, void** p, int h, int B) {
        launch(blocks, runs, THREADS, [=] { first((bf16*)p[0], (long long*)p[1], (bf16*)p[2], (bf16*)p[3],
            (u32*)p[4], h, B); }); }""",
    "first_weights": """extern "C" void run(int blocks, int runs, void** p, int B) {
        launch(blocks, runs, THREADS, [=] { first_weights((bf16*)p[0], (long long*)p[1], (bf16*)p[2], (u32*)p[3],
            (float*)p[4], B); }); }""",
    "moments": """extern "C" void run(int blocks, int runs, void** p, int B) {
        launch(blocks, runs, THREADS, [=] { moments((bf16*)p[0], (long long*)p[1], (float*)p[2], B); }); }""",
    "pool_back": """extern "C" void run(int blocks, int runs, void** p, int y, int d, int row, int out, int M) {
        launch(blocks, runs, THREADS, [=] { pool_back((bf16*)p[0], (float*)p[1], (float*)p[2], (bf16*)p[3],
            (bf16*)p[4], y, d, row, out, M); }); }""",
}
COMPILER = shutil.which("g++")


class Kernel:
    """Called as `nvrtc.Kernel` is."""

    blocks_at_once = 3

    def __init__(self, library: ctypes.CDLL, whole: bool) -> None:
        self.library, self.whole = library, whole
        """whole: tensors must be contiguous, while in others runs may lie apart."""

    def __call__(self, grid: tuple[int, int], *args: Tensor | int) -> None:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        assert all((t if self.whole else t[0]).is_contiguous() for t in tensors)
        pointers = (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))
        self.library.run(*grid, pointers, *args[len(tensors) :])


def compiled(name: str, entry: str, constants: Mapping[str, int], threads: int, shared: int) -> Kernel:
    """As `nvrtc.compiled`, for the CPU."""
    assert threads == constants["WARPS"] * 32
    return _compiled(name, entry, tuple(constants.items()), shared)


@cache
def _compiled(name: str, entry: str, constants: tuple[tuple[str, int], ...], shared: int) -> Kernel:
    assert COMPILER is not None
    defines = [f"-D{key}={value}" for key, value in (*constants, ("SHARED", shared))]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        source.write_text('#include "on_cpu.h"\n' + (KERNELS / name).read_text() + CALLS[entry])
        command = [COMPILER, "-O1", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{HERE}", f"-I{KERNELS}", *defines]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        return Kernel(ctypes.CDLL(str(library)), whole=name == "lenet.cu")
