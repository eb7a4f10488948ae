"""BPF programs run by BPF_PROG_TEST_RUN on frames that they are given: without a network, for tests, too."""

import ctypes
import os
from typing import Self

BPF_PROG_TYPE_SCHED_CLS = 3
# r0 = -1 (TC_ACT_UNSPEC); exit
EMPTY_INSTRUCTIONS = bytes.fromhex("b7000000ffffffff9500000000000000")


class _TestRunOptions(ctypes.Structure):
    """struct bpf_test_run_opts of libbpf 1.x."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_char_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_char_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


class Program:
    """A loaded program. A context manager that lets it go."""

    def __init__(self, descriptor: int, what: str) -> None:
        if descriptor < 0:
            raise OSError(-descriptor, f"{what}: {os.strerror(-descriptor)}")
        self._descriptor = descriptor

    @classmethod
    def of_id(cls, number: int) -> Self:
        """The program that the kernel knows by this number. Raises OSError."""
        return cls(_libbpf().bpf_prog_get_fd_by_id(number), f"BPF program {number}")

    @classmethod
    def empty(cls) -> Self:
        """A classifier that does nothing. Raises OSError."""
        count = len(EMPTY_INSTRUCTIONS) // 8
        arguments = (BPF_PROG_TYPE_SCHED_CLS, b"empty", b"GPL", EMPTY_INSTRUCTIONS, count, None)
        return cls(_libbpf().bpf_prog_load(*arguments), "load an empty BPF program")

    def run(self, frame: bytes, repeat: int = 1, skb: bytes | None = None) -> int:
        """Run it `repeat` times on the frame, with this struct __sk_buff; the mean time in ns, as the kernel
        measured it. Raises OSError."""
        options = _TestRunOptions(
            sz=ctypes.sizeof(_TestRunOptions),
            data_in=frame,
            data_size_in=len(frame),
            ctx_in=skb,
            ctx_size_in=len(skb or b""),
            repeat=repeat,
        )
        status = _libbpf().bpf_prog_test_run_opts(self._descriptor, ctypes.byref(options))
        if status != 0:
            raise OSError(-status, f"BPF_PROG_TEST_RUN: {os.strerror(-status)}")
        return int(options.duration)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _libbpf() -> ctypes.CDLL:
    return ctypes.CDLL("libbpf.so.1")
