"""CUDA sources of this package, compiled where they run by the compiler that comes with torch (NVRTC)."""

import contextlib
import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shortlist.internal.files import atomic_write, cache_folder

PRELUDE = "tensor_cores.cuh"
INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def source(name: str) -> str:
    """The text of a CUDA source, what it includes put in, behind the instructions it is written in."""
    here = Path(__file__).parent
    text = INCLUDE.sub(lambda found: (here / found[1]).read_text(), (here / name).read_text())
    return (here / PRELUDE).read_text() + text


class Kernel:
    """A compiled kernel that is launched with tensors and integers (32 bits)."""

    def __init__(self, function: ctypes.c_void_p, threads: int, shared: int) -> None:
        self.function, self.threads, self.shared = function, threads, shared
        _check(_driver().cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, shared))
        count = ctypes.c_int()
        _check(
            _driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(count), function, threads, ctypes.c_size_t(shared)
            )
        )
        self.blocks_at_once = count.value * torch.cuda.get_device_properties().multi_processor_count
        """How many blocks the device runs at a time."""

    def __call__(self, grid: tuple[int, int], *args: Tensor | int) -> None:
        """Launch on the current stream."""
        values: list[Any] = [
            ctypes.c_void_p(arg.data_ptr()) if isinstance(arg, Tensor) else ctypes.c_int(arg) for arg in args
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(
            _driver().cuLaunchKernel(
                self.function, *grid, 1, self.threads, 1, 1, self.shared, stream, pointers, ctypes.c_void_p()
            )
        )


def compiled(name: str, entry: str, constants: Mapping[str, int], threads: int, shared: int) -> Kernel:
    """A kernel of a source with its compile-time constants; each is compiled once in a process."""
    return _compiled(name, entry, tuple(constants.items()), threads, shared, torch.cuda.current_device())


@cache
def _compiled(
    name: str, entry: str, constants: tuple[tuple[str, int], ...], threads: int, shared: int, device: int
) -> Kernel:
    torch.cuda.current_stream().synchronize()  # makes sure that the device's context is there
    major, minor = torch.cuda.get_device_capability(device)
    options = [f"-arch=sm_{major}{minor}", "-std=c++17", *(f"-D{key}={value}" for key, value in constants)]
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _check(_driver().cuModuleLoadData(ctypes.byref(module), _binary(name, options)))
    _check(_driver().cuModuleGetFunction(ctypes.byref(function), module, entry.encode()))
    return Kernel(function, threads, shared)


def _binary(name: str, options: list[str]) -> bytes:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _compiler().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    version = f"NVRTC {major.value}.{minor.value}"
    return kept([version, source(name), *options], lambda: _compile(name, options))


def kept(parts: Sequence[str], make: Callable[[], bytes]) -> bytes:
    """What `make` makes of these parts, out of the user's cache where it was made before: a fleet has dozens."""
    path = cache_folder() / "kernels" / sha256("\0".join(parts).encode()).hexdigest()
    try:
        return path.read_bytes()
    except OSError:
        binary = make()
    with contextlib.suppress(OSError):  # a home that cannot be written to only costs time
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, binary)
    return binary


def _compile(name: str, options: list[str]) -> bytes:
    nvrtc = _compiler()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source(name).encode(), name.encode(), 0, None, None)
    made = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*map(str.encode, options)))
    if made != 0:
        raise RuntimeError(f"{name} with {' '.join(options)}: {_output(nvrtc, program, 'ProgramLog').decode()}")
    binary = _output(nvrtc, program, "CUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return binary


def _output(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


@cache
def _compiler() -> ctypes.CDLL:
    name = f"libnvrtc.so.{str(torch.version.cuda).split('.')[0]}"
    try:
        return ctypes.CDLL(name)
    except OSError:  # in a package of its own beside torch, where the system does not look
        for path in Path(torch.__file__).parents[1].glob(f"nvidia/*/lib/{name}"):
            return ctypes.CDLL(str(path))
        raise


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(result: int) -> None:
    if result != 0:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(result, ctypes.byref(text))
        raise RuntimeError(f"CUDA: {(text.value or b'unknown error').decode()}")
