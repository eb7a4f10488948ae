"""An endpoint that tries to reach beyond its trial, and reports what came of each try.

It has the download of the other tests' endpoints besides, so that its trial would be ok. Each way is a deed
that returns when it worked, and raises when it was kept from it; one of several tries works when any of them
does. `options` of its assignment say what is outside. The report is `report.json` in its log folder: by name,
"worked" or what kept it.
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
from collections.abc import Callable, Iterable
from pathlib import Path

task = json.loads(Path(sys.argv[1]).read_text())
outside = task["options"]
log = Path(task["log_folder"])
libc = ctypes.CDLL(None, use_errno=True)
Deed = Callable[[], object]

MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 0x20, 0x1000
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
PTRACE_ATTACH = 16
BPF_PROG_LOAD, SCHED_CLS, BPF_NUMBER = 5, 3, {"x86_64": 321, "aarch64": 280}


def check(status: int) -> None:
    if status == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def check_not(fails: bool, why: str) -> None:
    if fails:
        raise OSError(why)


def run(*command: object) -> str:
    result = subprocess.run([*map(str, command)], capture_output=True, text=True)
    check_not(result.returncode != 0, f"{command[0]}: {result.stderr.strip()[-200:]}")
    return result.stdout


def any_of(deed: Callable[..., object], tries: Iterable[object]) -> None:
    """Do the deed with each of what is to be tried, until it works."""
    reasons = []
    for one in tries:
        try:
            deed(*one) if isinstance(one, tuple) else deed(one)
        except Exception as error:
            reasons.append(str(error))
        else:
            return
    raise OSError(f"all of {len(reasons)}: {' | '.join(sorted(set(reasons)))[:200]}")


def either(*deeds: Deed) -> None:
    any_of(lambda deed: deed(), deeds)


def append(path: Path | str) -> None:
    with Path(path).open("ab", buffering=0) as file:
        file.write(b" ")


def processes() -> list[int]:
    own = {os.getpid(), os.getppid() if os.getppid() > 1 else 0}
    names = [path.name for path in Path("/proc").iterdir()]
    return [int(name) for name in names if name.isdigit() and int(name) not in own]


def interface() -> str:
    return next(name for _, name in socket.if_nameindex() if name != "lo")


def in_child(work: Deed) -> None:
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
    check_not(reason != b"worked", reason.decode())


def as_root_of_a_user_namespace(work: Deed) -> None:
    def enter_and_work() -> None:
        check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        work()

    in_child(enter_and_work)


def mount_its_root_for_writing() -> None:
    check(libc.mount(b"", b"/", None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None))


def unmount_what_hides_homes() -> None:
    any_of(lambda path: check(libc.umount2(path, 2)), (b"/root", b"/home", b"/tmp", b"/run", b"/dev"))


def escape_by_chroot() -> None:
    (log / "jail").mkdir(exist_ok=True)
    os.chroot(log / "jail")


def reach_other_folders_through_a_process() -> None:
    places = [f"root{outside['secret']}", f"cwd/../{Path(outside['secret']).name}"]
    paths = [f"/proc/{process}/{place}" for process in processes() for place in places]
    any_of(lambda path: Path(path).read_bytes(), paths)


def write_as_it_is(sysctl: str) -> None:
    path = Path("/proc/sys") / sysctl
    path.write_text(path.read_text())


def start_a_setuid_program() -> None:
    check_not(run(outside["setuid_id"], "-u").strip() != "0", "it runs as whoever starts it")


def have_a_capability() -> None:
    hits = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")]
    check_not(all(int(line.split()[1], 16) == 0 for line in hits), "no set has one")


def load_a_bpf_program() -> None:
    instructions = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
    program, name = ctypes.create_string_buffer(instructions), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("<IIQQ", SCHED_CLS, 2, ctypes.addressof(program), ctypes.addressof(name))
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"))
    check(libc.syscall(BPF_NUMBER[os.uname().machine], BPF_PROG_LOAD, buffer, 128))


def raise_a_limit() -> None:
    kinds = (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    any_of(lambda kind: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2), kinds)


def change_its_interface() -> None:
    name = interface()
    commands = (
        f"ip link set {name} mtu 600",
        f"ip link set {name} down",
        f"ip route add 192.0.2.0/24 dev {name}",
        f"ip address add 192.0.2.1/24 dev {name}",
        f"tc qdisc add dev {name} root pfifo",
    )
    any_of(lambda command: run(*command.split()), commands)


def detach_the_dropper() -> None:
    where = ("--dev", "r1-r2", "--ingress")
    any_of(lambda node: run(outside["dropper"], "detach", "--netns", node, *where), processes())


def send_raw_packets() -> None:
    kinds = (
        (socket.AF_INET, socket.IPPROTO_RAW),
        (socket.AF_INET, socket.IPPROTO_ICMP),
        (socket.AF_PACKET, 0),
    )
    any_of(lambda family, protocol: socket.socket(family, socket.SOCK_RAW, protocol).close(), kinds)


def see_interfaces_that_are_not_its_own() -> None:
    visible, own = (
        {path.name for path in Path("/sys/class/net").iterdir()},
        dict(socket.if_nameindex()).values(),
    )
    check_not(not visible - set(own), "there are none")


def enter_namespaces(*kinds: str) -> None:
    def enter(path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            check(libc.setns(descriptor, 0))
        finally:
            os.close(descriptor)

    any_of(enter, [f"/proc/{process}/ns/{kind}" for process in processes() for kind in kinds])


def connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as service:
        service.connect(address)


def signal_another_group() -> None:
    groups = [process for process in processes() if process != 1]  # to signal the group 1 is to signal all
    any_of(lambda group: os.killpg(group, signal.SIGCONT), groups)


def kill_whatever_it_can() -> None:
    others = [process for process in processes() if process != os.getppid()]
    any_of(lambda process: os.kill(process, signal.SIGKILL), others)


def write_text(path: Path | str, text: str) -> None:
    Path(path).write_text(text)


DEVICES = ("kmsg", "mem", "sda", "vda", "net/tun", "kvm", "tty", "tty0", "ptmx", "loop-control")
SYSCTLS = ("net/core/rmem_max", "net/ipv4/ip_forward", "kernel/panic", "kernel/hostname", "vm/swappiness")
OF_SYS = {"/sys/fs/cgroup/pids/cgroup.procs": "0", "/sys/power/state": "mem", "/proc/sysrq-trigger": "h"}
WAYS: dict[str, Deed] = {
    # Files
    "write the database": lambda: append(outside["database"]),
    "remove the database": lambda: Path(outside["database"]).unlink(),
    "write into a folder that everybody may write": lambda: write_text(f"{outside['shared']}/note", "x"),
    "read a secret of the same temporary folder": lambda: Path(outside["secret"]).read_text(),
    "write in etc": lambda: either(Path("/etc/fecbench-hostile").touch, lambda: append("/etc/passwd")),
    "read what is in homes": lambda: any_of(lambda home: next(Path(home).iterdir()), ("/root", "/home")),
    "write its own implementation": lambda: either(
        lambda: append(__file__), lambda: Path(__file__).chmod(0o777)
    ),
    "write its own assignment": lambda: either(lambda: append(sys.argv[1]), Path(sys.argv[1]).unlink),
    "mount its root for writing": mount_its_root_for_writing,
    "unmount what hides homes": unmount_what_hides_homes,
    "the first in a user namespace": lambda: as_root_of_a_user_namespace(mount_its_root_for_writing),
    "the second in a user namespace": lambda: as_root_of_a_user_namespace(unmount_what_hides_homes),
    "escape by chroot": escape_by_chroot,
    "reach other folders through a process": reach_other_folders_through_a_process,
    # Devices, sysctls, time
    "open a device of the machine": lambda: any_of(lambda d: os.open(f"/dev/{d}", os.O_RDWR), DEVICES),
    "make a device": lambda: os.mknod(log / "disk", 0o600 | 0o060000, os.makedev(254, 0)),
    "use a device that lies in its implementation": lambda: Path(outside["device"]).read_bytes(),
    "write a sysctl": lambda: any_of(write_as_it_is, SYSCTLS),
    "write to sys": lambda: any_of(
        write_text, [*OF_SYS.items(), (f"/sys/class/net/{interface()}/mtu", "600")]
    ),
    "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME)),
    # Rights
    "start a setuid program": start_a_setuid_program,
    "become root": lambda: either(lambda: os.setuid(0), lambda: os.setgroups([0]), lambda: os.setgid(0)),
    "become another endpoint": lambda: any_of(lambda step: os.setuid(os.getuid() + step), (-1, 1)),
    "have a capability": have_a_capability,
    "have a group of the machine": lambda: check_not(not os.getgroups(), "there is none"),
    "gain rights by starting programs": lambda: check_not(
        "NoNewPrivs:\t1" in Path("/proc/self/status").read_text(), "no_new_privs is set"
    ),
    "load a BPF program": load_a_bpf_program,
    "take real-time priority": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "take a higher priority": lambda: os.nice(-1),
    "raise a limit": raise_a_limit,
    "be spared when memory is short": lambda: write_text("/proc/self/oom_score_adj", "-1000"),
    # The network
    "change its interface": change_its_interface,
    "detach the dropper": detach_the_dropper,
    "send raw packets": send_raw_packets,
    "see interfaces that are not its own": see_interfaces_that_are_not_its_own,
    "enter the namespaces of another process": lambda: in_child(
        lambda: enter_namespaces("net", "mnt", "pid", "ipc", "uts")
    ),
    "enter them from a user namespace": lambda: as_root_of_a_user_namespace(
        lambda: enter_namespaces("net", "mnt")
    ),
    "talk to a service of the machine": lambda: any_of(connect, outside["sockets"]),
    # Other processes
    "signal another process": lambda: any_of(lambda p: os.kill(p, signal.SIGCONT), processes()),
    "signal another group": signal_another_group,
    "kill whatever it can": lambda: in_child(kill_whatever_it_can),
    "trace another process": lambda: any_of(
        lambda p: check(libc.ptrace(PTRACE_ATTACH, p, None, None)), processes()
    ),
    "read the memory of another process": lambda: any_of(
        lambda p: Path(f"/proc/{p}/mem").open("rb").close(), processes()
    ),
    "write to the standard output of another process": lambda: any_of(
        lambda p: append(f"/proc/{p}/fd/1"), processes()
    ),
    # The other endpoint
    "read the private key": lambda: either(
        Path(outside["private_key"]).read_bytes, (log.parent / "server.json").read_bytes
    ),
    "write into the log folder of the other": lambda: any_of(
        lambda path: write_text(path, "x"), (log.parent / "server" / "note", log.parent / "note")
    ),
    # The server made a segment with this key for everybody.
    "share memory with the other": lambda: check(libc.shmget(outside["ipc_key"], 0, 0)),
}


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
    received = 0
    while part := os.read(reading, 1 << 16):
        received += len(part) << 26
    os.waitpid(child, 0)
    return received


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
    start_s, received = time.monotonic(), 0
    udp.settimeout(0.2)
    while received < 40:
        udp.sendto(b"x" * 1000, (task["address"], task["port"]))
        with contextlib.suppress(TimeoutError):
            while received < 40:
                udp.recv(2000)
                received += 1
    say("done", dct_s=time.monotonic() - start_s)


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    serve(udp) if task["role"] == "server" else download(udp)
