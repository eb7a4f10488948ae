"""An endpoint that tries to reach beyond its trial, and reports what came of each try.

It has the download of the other tests' endpoints besides, so that its trial would be ok. Each way is a
function that returns when it worked, and raises when it was kept from it. `options` of its assignment say
what is outside. The report is `report.json` in its log folder: by name, "worked" or what kept it.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

task = json.loads(Path(sys.argv[1]).read_text())
outside = task["options"]
log = Path(task["log_folder"])
libc = ctypes.CDLL(None, use_errno=True)
WAYS: dict[str, Callable[[], object]] = {}

MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 0x20, 0x1000
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
PTRACE_ATTACH = 16
BPF_PROG_LOAD, SCHED_CLS, BPF_NUMBER = 5, 3, {"x86_64": 321, "aarch64": 280}


def way(function: Callable[[], object]) -> Callable[[], object]:
    WAYS[function.__name__] = function
    return function


def check(status: int) -> None:
    if status == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def run(*command: object) -> str:
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if ended.returncode:
        raise OSError(f"{command[0]}: {ended.stderr.strip()[-200:]}")
    return ended.stdout


def any_of(tries: Iterator[Callable[[], object]]) -> None:
    """Works when one of the tries does."""
    reasons = []
    for one in tries:
        try:
            one()
        except Exception as error:
            reasons.append(str(error))
        else:
            return
    raise OSError(f"all of {len(reasons)}: {' | '.join(sorted(set(reasons)))[:200]}")


def append(path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(b" ")


def processes() -> list[int]:
    own = {os.getpid(), os.getppid() if os.getppid() > 1 else 0}
    names = [path.name for path in Path("/proc").iterdir()]
    return [int(name) for name in names if name.isdigit() and int(name) not in own]


def interface() -> str:
    return next(name for _, name in socket.if_nameindex() if name != "lo")


def in_child(work: Callable[[], object]) -> None:
    """Works when `work` does, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        reason = b"worked"
        try:
            work()
        except BaseException as error:
            reason = str(error).encode() or b"failed"
        os.write(writing, reason[:500])
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    reason = os.read(reading, 500)
    if reason != b"worked":
        raise OSError(reason.decode())


def as_root_of_a_user_namespace(work: Callable[[], object]) -> None:
    def enter_and_work() -> None:
        check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        work()

    in_child(enter_and_work)


# Files


@way
def write_the_database() -> None:
    append(Path(outside["database"]))


@way
def remove_the_database() -> None:
    Path(outside["database"]).unlink()


@way
def write_into_a_folder_that_everybody_may_write() -> None:
    (Path(outside["shared"]) / "note").write_text("x")


@way
def read_a_secret_of_the_same_temporary_folder() -> None:
    Path(outside["secret"]).read_text()


@way
def write_in_etc() -> None:
    any_of(iter((lambda: Path("/etc/fecbench-hostile").touch(), lambda: append(Path("/etc/passwd")))))


@way
def read_what_is_in_homes() -> None:
    any_of((lambda folder=folder: next(Path(folder).iterdir())) for folder in ("/root", "/home"))


@way
def write_its_own_implementation() -> None:
    any_of(iter((lambda: append(Path(__file__)), lambda: Path(__file__).chmod(0o777))))


@way
def write_its_own_assignment() -> None:
    any_of(iter((lambda: append(Path(sys.argv[1])), lambda: Path(sys.argv[1]).unlink())))


@way
def mount_its_root_for_writing() -> None:
    check(libc.mount(b"", b"/", None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None))


@way
def unmount_what_hides_homes() -> None:
    any_of(
        (lambda path=path: check(libc.umount2(path, 2)))
        for path in (b"/root", b"/home", b"/tmp", b"/run", b"/dev")
    )


@way
def mount_its_root_for_writing_in_a_user_namespace() -> None:
    as_root_of_a_user_namespace(
        lambda: check(libc.mount(b"", b"/", None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None))
    )


@way
def unmount_what_hides_homes_in_a_user_namespace() -> None:
    as_root_of_a_user_namespace(unmount_what_hides_homes)


@way
def escape_by_chroot() -> None:
    (log / "jail").mkdir(exist_ok=True)
    os.chroot(log / "jail")


@way
def reach_other_folders_through_a_process() -> None:
    places = [f"root{outside['secret']}", f"cwd/../{Path(outside['secret']).name}"]
    any_of(
        (lambda path=f"/proc/{process}/{place}": Path(path).read_bytes())
        for process in processes()
        for place in places
    )


# Devices, sysctls, time


@way
def open_a_device_of_the_machine() -> None:
    names = ("kmsg", "mem", "sda", "vda", "net/tun", "kvm", "tty", "tty0", "ptmx", "loop-control")
    any_of((lambda name=name: os.open(f"/dev/{name}", os.O_RDWR)) for name in names)


@way
def make_a_device() -> None:
    os.mknod(log / "disk", 0o600 | 0o060000, os.makedev(254, 0))


@way
def use_a_device_that_lies_in_its_implementation() -> None:
    (Path(outside["device"])).read_bytes()


@way
def write_a_sysctl() -> None:
    names = ("net/core/rmem_max", "net/ipv4/ip_forward", "kernel/panic", "kernel/hostname", "vm/swappiness")

    def write(name: str) -> None:
        path = Path("/proc/sys") / name
        path.write_text(path.read_text())

    any_of((lambda name=name: write(name)) for name in names)


@way
def write_to_sys() -> None:
    any_of(
        iter(
            (
                lambda: Path(f"/sys/class/net/{interface()}/mtu").write_text("600"),
                lambda: Path("/sys/fs/cgroup/pids/cgroup.procs").write_text("0"),
                lambda: Path("/sys/power/state").write_text("mem"),
                lambda: Path("/proc/sysrq-trigger").write_text("h"),
            )
        )
    )


@way
def set_the_clock() -> None:
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))


# Rights


@way
def start_a_setuid_program() -> None:
    if run(outside["setuid_id"], "-u").strip() != "0":
        raise OSError("it runs as whoever starts it")


@way
def become_root() -> None:
    any_of(iter((lambda: os.setuid(0), lambda: os.setgroups([0]), lambda: os.setgid(0))))


@way
def become_another_endpoint() -> None:
    any_of((lambda step=step: os.setuid(os.getuid() + step)) for step in (-1, 1))


@way
def have_a_capability() -> None:
    held = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")]
    if all(int(line.split()[1], 16) == 0 for line in held):
        raise OSError("no set has one")


@way
def have_a_group_of_the_machine() -> None:
    if not os.getgroups():
        raise OSError("there is none")


@way
def gain_rights_by_starting_programs() -> None:
    if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
        raise OSError("no_new_privs is set")


@way
def load_a_bpf_program() -> None:
    instructions = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
    program, name = ctypes.create_string_buffer(instructions), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("<IIQQ", SCHED_CLS, 2, ctypes.addressof(program), ctypes.addressof(name))
    given = ctypes.create_string_buffer(attributes.ljust(128, b"\0"))
    check(libc.syscall(BPF_NUMBER[os.uname().machine], BPF_PROG_LOAD, given, 128))


@way
def take_real_time_priority() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


@way
def take_a_higher_priority() -> None:
    os.nice(-1)


@way
def raise_a_limit() -> None:
    kinds = (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    any_of((lambda kind=kind: resource.setrlimit(kind, infinite)) for kind in kinds)


@way
def be_spared_when_memory_is_short() -> None:
    Path("/proc/self/oom_score_adj").write_text("-1000")


# The network


@way
def change_its_interface() -> None:
    name = interface()
    commands = (
        ["ip", "link", "set", name, "mtu", "600"],
        ["ip", "link", "set", name, "down"],
        ["ip", "route", "add", "192.0.2.0/24", "dev", name],
        ["ip", "address", "add", "192.0.2.1/24", "dev", name],
        ["tc", "qdisc", "add", "dev", name, "root", "pfifo"],
    )
    any_of((lambda command=command: run(*command)) for command in commands)


@way
def detach_the_dropper() -> None:
    any_of(
        (lambda node=node: run(outside["dropper"], "detach", "--netns", node, "--dev", "r1-r2", "--ingress"))
        for node in processes()
    )


@way
def send_raw_packets() -> None:
    kinds = (
        (socket.AF_INET, socket.IPPROTO_RAW),
        (socket.AF_INET, socket.IPPROTO_ICMP),
        (socket.AF_PACKET, 0),
    )
    any_of((lambda kind=kind: socket.socket(kind[0], socket.SOCK_RAW, kind[1]).close()) for kind in kinds)


@way
def see_interfaces_that_are_not_its_own() -> None:
    seen, own = {path.name for path in Path("/sys/class/net").iterdir()}, dict(socket.if_nameindex()).values()
    if not seen - set(own):
        raise OSError("there are none")


def enter_namespaces(kinds: tuple[str, ...]) -> None:
    def enter(path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            check(libc.setns(descriptor, 0))
        finally:
            os.close(descriptor)

    any_of(
        (lambda path=f"/proc/{process}/ns/{kind}": enter(path)) for process in processes() for kind in kinds
    )


@way
def enter_the_namespaces_of_another_process() -> None:
    in_child(lambda: enter_namespaces(("net", "mnt", "pid", "ipc", "uts")))


@way
def enter_them_from_a_user_namespace() -> None:
    as_root_of_a_user_namespace(lambda: enter_namespaces(("net", "mnt")))


@way
def talk_to_a_service_of_the_machine() -> None:
    def connect(address: str) -> None:
        with socket.socket(socket.AF_UNIX) as service:
            service.connect(address)

    any_of((lambda address=address: connect(address)) for address in outside["sockets"])


# Other processes


@way
def signal_another_process() -> None:
    any_of((lambda process=process: os.kill(process, signal.SIGCONT)) for process in processes())


@way
def signal_another_group() -> None:
    groups = [process for process in processes() if process != 1]  # to signal the group 1 is to signal all
    any_of((lambda group=group: os.killpg(group, signal.SIGCONT)) for group in groups)


@way
def kill_whatever_it_can() -> None:
    in_child(
        lambda: any_of(
            (lambda p=process: os.kill(p, signal.SIGKILL))
            for process in processes()
            if process != os.getppid()
        )
    )


@way
def trace_another_process() -> None:
    any_of((lambda p=process: check(libc.ptrace(PTRACE_ATTACH, p, None, None))) for process in processes())


@way
def read_the_memory_of_another_process() -> None:
    any_of((lambda p=process: Path(f"/proc/{p}/mem").open("rb").close()) for process in processes())


@way
def write_to_the_standard_output_of_another_process() -> None:
    any_of((lambda p=process: append(Path(f"/proc/{p}/fd/1"))) for process in processes())


# The other endpoint


@way
def read_the_private_key() -> None:
    any_of(
        iter(
            (
                lambda: Path(outside["private_key"]).read_bytes(),
                lambda: (log.parent / "server.json").read_bytes(),
            )
        )
    )


@way
def write_into_the_log_folder_of_the_other() -> None:
    any_of(
        iter(
            (
                lambda: (log.parent / "server" / "note").write_text("x"),
                lambda: (log.parent / "note").write_text("x"),
            )
        )
    )


@way
def share_memory_with_the_other() -> None:
    # The server made a segment with this key for everybody.
    check(libc.shmget(outside["ipc_key"], 0, 0))


# Amounts: each reports what it got


def fill(folder: Path) -> int:
    """The bytes that can be written to a folder."""
    written, number = 0, 0
    with contextlib.suppress(OSError):
        while True:
            with (folder / f"fill-{number}").open("wb", buffering=0) as file:
                number += 1
                for _ in range(64):
                    written += file.write(bytes(1 << 20))
    for path in folder.glob("fill-*"):
        path.unlink()
    return written


def make_files(folder: Path) -> int:
    """The files that can be made in a folder."""
    number = 0
    with contextlib.suppress(OSError):
        while number < 1_000_000:
            (folder / f"file-{number}").touch()
            number += 1
    for path in folder.glob("file-*"):
        path.unlink()
    return number


def open_files() -> int:
    """The files that can be opened."""
    descriptors = []
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.suppress(OSError):
        while len(descriptors) < 1_000_000:
            descriptors.append(os.open("/dev/null", os.O_RDONLY))
    for descriptor in descriptors:
        os.close(descriptor)
    return len(descriptors)


def fork() -> int:
    """The processes that can be started."""
    children = []
    with contextlib.suppress(OSError):
        while len(children) < 100_000:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return len(children)


def allocate() -> int:
    """The bytes of memory that a process got before it was killed or refused."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        blocks = []
        while True:
            try:
                blocks.append(bytearray(os.urandom(1 << 16)) * 1024)
            except MemoryError:
                os._exit(0)
            os.write(writing, b"x")
    os.close(writing)
    got = 0
    while part := os.read(reading, 1 << 16):
        got += len(part) << 26
    os.waitpid(child, 0)
    return got


# What root may find in the log folder


def lay_traps() -> None:
    (log / "trap-link").symlink_to(outside["secret"])
    (log / "trap-folder").symlink_to(Path(outside["secret"]).parent)
    os.mkfifo(log / "trap-fifo")
    with socket.socket(socket.AF_UNIX) as trap:
        trap.bind(str(log / "trap-socket"))
    (log / "one-name").write_text("x")
    os.link(log / "one-name", log / "other-name")
    with (log / "holes").open("wb") as holes:
        holes.truncate(400 << 20)
    with (log / "more-holes").open("wb") as holes:
        holes.truncate(400 << 20)
    (log / "folder").mkdir()
    (log / "folder" / "kept").write_text("kept")
    deep = log
    for _ in range(40):
        deep = deep / ("d" * 40)
        deep.mkdir()


def leave_a_daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(
                sys.executable, [sys.executable, "-c", f"import time; time.sleep(600)  # {outside['mark']}"]
            )
        os._exit(0)


def report() -> None:
    outcomes = {}
    for name, function in WAYS.items():
        try:
            function()
            outcomes[name] = "worked"
        except Exception as error:
            outcomes[name] = f"{type(error).__name__}: {error}"
    (log / "report.json").write_text(json.dumps(outcomes))
    amounts = {
        "log_bytes": fill(log),
        "temporary_bytes": fill(Path("/tmp")),
        "log_files": make_files(log),
        "open_files": open_files(),
        "processes": fork(),
        "memory_bytes": allocate(),
    }
    (log / "amounts.json").write_text(json.dumps(amounts))


def say(event: str, **metrics: float) -> None:
    print(json.dumps({"event": event, "metrics": metrics}), flush=True)


def serve(udp: socket.socket) -> None:
    libc.shmget(outside["ipc_key"], 4096, 0o1666)
    udp.bind((task["address"], task["port"]))
    signal.signal(signal.SIGINT, lambda *_: (say("done"), os._exit(0)))
    say("ready")
    while True:
        data, peer = udp.recvfrom(2000)
        for _ in range(10):
            udp.sendto(data, peer)


def download(udp: socket.socket) -> None:
    report()
    lay_traps()
    leave_a_daemon()
    begun, received = time.monotonic(), 0
    udp.settimeout(0.2)
    while received < 40:
        udp.sendto(b"x" * 1000, (task["address"], task["port"]))
        with contextlib.suppress(TimeoutError):
            while received < 40:
                udp.recv(2000)
                received += 1
    say("done", dct_s=time.monotonic() - begun)


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    serve(udp) if task["role"] == "server" else download(udp)
