"""Real packets, and what attaching leaves and touches: nothing that is not ours."""

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import subprocess
from contextlib import closing
from itertools import product

import numpy as np
import pytest

from fecbench.dropper.command import COMMAND, Attachment, DropperError, Filter, attach, detach, log, show
from fecbench.dropper.draws import unpack
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, verdicts
from tests.waiting import wait_until

PORT = 4433
QUIC = Filter("any", "udp", PORT)
BURSTY = GilbertElliott(0.05, 0.4, 0.99, 0.1)
SEED = 0xFEC
PACKETS = 4000
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR, TUNSETIFF = 0x0002, 0x1000, 0x4000, 0x400454CA
UDP_SEGMENT, SO_RCVBUFFORCE = 103, 33  # <linux/udp.h>, <asm-generic/socket.h>
OUR_PLACE = ("pref", "2", "handle", "0xfec", "protocol", "all")
CLASSIC_PROGRAM_THAT_DROPS = ("bpf", "da", "bytecode", "1,6 0 0 2")


def numbered(count):
    return (struct.pack("!I", n) + bytes(200) for n in range(count))


def put_filter_that_drops(namespace, direction, *place):
    to = ("dev", namespace.interface, direction)
    namespace.run("tc", "filter", "add", *to, *place, *CLASSIC_PROGRAM_THAT_DROPS)


def udp_socket(namespace, family=socket.AF_INET):
    sender = namespace.inside(lambda: socket.socket(family, socket.SOCK_DGRAM))
    sender.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    return sender


def packet_socket(namespace):
    sender = namespace.inside(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
    sender.bind((namespace.interface, 0))
    return sender


def numbers_received(receiver):
    """The numbers of all datagrams that wait."""
    received = set()
    while select.select([receiver], [], [], 0.1)[0]:
        received.add(struct.unpack_from("!I", receiver.recv(2048))[0])
    return received


def assert_dropped_as_predicted(attachment, received, packets, model=BURSTY):
    predicted = verdicts(model, SEED, packets)
    assert set(range(packets)) - received == set(np.flatnonzero(predicted).tolist())
    assert np.array_equal(unpack(log(attachment).bitmap, packets), predicted)
    counters = show(attachment)
    assert (counters.seen, counters.dropped) == (packets, np.count_nonzero(predicted))
    assert (counters.gso, counters.truncated, counters.fragments) == (0, 0, 0)


# ---- Packets ----


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("side", ["ingress of the receiver", "egress of the sender"])
def test_of_real_packets_through_a_veth_exactly_the_predicted_ones_are_lost(veth_with_ipv6, family, side):
    near, far = veth_with_ipv6
    attachment = far.attachment("ingress") if side.startswith("ingress") else near.attachment("egress")
    address = (far.ipv4, PORT) if family == socket.AF_INET else (far.ipv6, PORT)
    attach(attachment, BURSTY, SEED, QUIC)
    with closing(udp_socket(near, family)) as sender, closing(udp_socket(far, family)) as receiver:
        receiver.bind(address)
        for datagram in numbered(PACKETS):
            try:
                sender.sendto(datagram, address)
            except OSError as refused:  # a loss at the sender's own egress is told to it
                assert refused.errno == errno.ENOBUFS
        received = numbers_received(receiver)
    assert_dropped_as_predicted(attachment, received, PACKETS)


def frame_to(namespace, mac, payload):
    udp = struct.pack("!HHHH", 50000, PORT, 8 + len(payload), 0) + payload
    addresses = socket.inet_aton("10.83.0.77") + socket.inet_aton(namespace.ipv4)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    words = sum(struct.unpack("!10H", header))
    checksum = 0xFFFF - (words % 0xFFFF)
    return (
        mac
        + bytes.fromhex("02fec0000001")
        + b"\x08\x00"
        + header[:10]
        + struct.pack("!H", checksum)
        + header[12:]
        + udp
    )


@pytest.fixture
def tap(quiet_namespaces):
    """A namespace whose interface is a TAP; `open_tap(flags)` makes it and gives its descriptor."""
    with quiet_namespaces("tap0") as [namespace]:
        descriptors = []

        def open_tap(flags=0):
            def make():
                fd = os.open("/dev/net/tun", os.O_RDWR)
                fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"tap0", IFF_TAP | IFF_NO_PI | flags))
                return fd

            descriptors.append(namespace.inside(make))
            namespace.run("ip", "address", "add", f"{namespace.ipv4}/24", "dev", "tap0")
            namespace.run("ip", "link", "set", "tap0", "up")
            return descriptors[-1]

        try:
            yield namespace, open_tap
        finally:
            for fd in descriptors:
                os.close(fd)


@pytest.mark.parametrize("linear", [True, False], ids=["linear", "headers-beyond-the-linear-part"])
def test_of_real_packets_through_a_tap_exactly_the_predicted_ones_are_lost(tap, mac, linear):
    namespace, open_tap = tap
    fd = open_tap() if linear else open_tap(IFF_VNET_HDR)
    # struct virtio_net_hdr whose hdr_len keeps all but the Ethernet header out of the skb's linear part
    prefix = b"" if linear else struct.pack("<BBHHHH", 0, 0, 14, 0, 0, 0)
    attach(namespace.attachment("ingress"), BURSTY, SEED, QUIC)
    with closing(udp_socket(namespace)) as receiver:
        receiver.bind((namespace.ipv4, PORT))
        for payload in numbered(PACKETS):
            os.write(fd, prefix + frame_to(namespace, mac(namespace), payload))
        received = numbers_received(receiver)
    assert_dropped_as_predicted(namespace.attachment("ingress"), received, PACKETS)


def test_packets_with_a_vlan_tag_that_the_kernel_took_out_of_the_frame_are_judged(veth, mac):
    near, far = veth
    attach(far.attachment("ingress"), Uniform(0), 0, QUIC)
    with closing(packet_socket(near)) as sender:
        frame = frame_to(far, mac(far), bytes(100))
        for tags in (b"\x81\x00\x00\x64", b"\x88\xa8\x00\x0a\x81\x00\x00\x64"):
            sender.send(frame[:12] + tags + frame[12:])
    assert far.counters_after(judged=2).other == 0


def test_a_super_packet_of_the_sender_is_counted_as_gso_and_segmented_ones_are_not(veth):
    near, far = veth
    with closing(udp_socket(near)) as sender:
        sender.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
        for offload, expected in (("on", (1, 1)), ("off", (10, 0))):
            near.run("ethtool", "-K", near.interface, "tx-udp-segmentation", offload)
            attach(far.attachment("ingress"), Uniform(0), 0, QUIC)
            sender.sendto(bytes(10 * 1000), (far.ipv4, PORT))
            counters = far.counters_after(judged=expected[0])
            assert (counters.seen, counters.gso) == expected


def test_cut_packets_are_counted_truncated_and_judged_if_their_ports_are_there(veth, mac):
    near, far = veth
    frame = frame_to(far, mac(far), bytes(60))
    attach(far.attachment("ingress"), Uniform(0), 0, QUIC)
    with closing(packet_socket(near)) as sender:
        for length in range(14, len(frame)):
            sender.send(frame[:length])
    with_ports = range(14 + 20 + 4, len(frame))
    counters = far.counters_after(judged=len(with_ports))
    assert (counters.seen, counters.other) == (len(with_ports), 24)
    assert counters.truncated == len(frame) - 14


# ---- Attaching ----


def test_attaching_again_starts_afresh_with_one_filter(veth):
    near, far = veth
    for seed in (1, SEED):
        attach(far.attachment("ingress"), BURSTY, seed, QUIC)
        with closing(udp_socket(near)) as sender:
            for datagram in numbered(500):
                sender.sendto(datagram, (far.ipv4, PORT))
        far.counters_after(judged=500)
    assert np.array_equal(unpack(log(far.attachment("ingress")).bitmap, 500), verdicts(BURSTY, SEED, 500))
    _, ingress, egress = far.qdiscs_and_filters()
    assert len([filter for filter in ingress if "options" in filter]) == 1
    assert egress == []


def test_the_two_directions_are_independent(veth):
    near, far = veth
    attach(far.attachment("ingress"), Uniform(0), 0, QUIC)
    attach(far.attachment("egress"), Uniform(1), 0, QUIC)
    with closing(udp_socket(near)) as sender:
        for _ in range(10):
            sender.sendto(b"", (far.ipv4, PORT))
    assert far.counters_after(judged=10).dropped == 0
    assert show(far.attachment("egress")).seen == 0


def test_detaching_leaves_the_interface_as_it_was(veth):
    _, far = veth
    before = far.qdiscs_and_filters()
    detach(far.attachment("ingress"))  # of nothing
    assert far.qdiscs_and_filters() == before
    for order, times in product((("ingress", "egress"), ("egress", "ingress")), (1, 2)):
        for direction in ("ingress", "egress") * times:
            attach(far.attachment(direction), Uniform(0.1), 0)
        for direction in order:
            assert far.qdiscs_and_filters() != before
            detach(far.attachment(direction))
        assert far.qdiscs_and_filters() == before, (order, times)


def test_a_detached_program_is_gone_from_the_kernel(veth):
    _, far = veth
    attach(far.attachment("ingress"), Uniform(0.1), 0)
    program_id = far.json_of("show", "ingress")["program_id"]
    detach(far.attachment("ingress"))
    libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)

    def is_gone() -> bool:
        descriptor = libbpf.bpf_prog_get_fd_by_id(ctypes.c_uint32(program_id))
        if descriptor >= 0:
            os.close(descriptor)
        return descriptor < 0

    wait_until(is_gone, "the end of a grace period")
    assert ctypes.get_errno() == errno.ENOENT


def their_clsact(namespace):
    namespace.run("tc", "qdisc", "add", "dev", namespace.interface, "clsact")


def their_ingress_qdisc(namespace):
    namespace.run("tc", "qdisc", "add", "dev", namespace.interface, "ingress")


def their_filters(namespace):
    their_clsact(namespace)
    put_filter_that_drops(namespace, "ingress")
    put_filter_that_drops(namespace, "egress", "pref", "2")


def their_empty_chain(namespace):
    their_clsact(namespace)
    namespace.run("tc", "chain", "add", "dev", namespace.interface, "ingress", "chain", "5")


def their_root_qdisc(namespace):
    namespace.run("tc", "qdisc", "add", "dev", namespace.interface, "root", "pfifo", "limit", "77")


@pytest.mark.parametrize(
    "put_theirs", [their_clsact, their_ingress_qdisc, their_filters, their_empty_chain, their_root_qdisc]
)
def test_what_others_have_on_the_interface_stays_as_it_was(veth, put_theirs):
    _, far = veth
    put_theirs(far)
    before = far.qdiscs_and_filters()
    attach(far.attachment("ingress"), Uniform(0.1), 0)
    detach(far.attachment("ingress"))
    assert far.qdiscs_and_filters() == before


def test_a_qdisc_that_we_made_stays_while_somebody_has_a_filter_there(veth):
    _, far = veth
    for direction in ("ingress", "egress"):
        attach(far.attachment("ingress"), Uniform(0.1), 0)
        put_filter_that_drops(far, direction, "pref", "9")
        detach(far.attachment("ingress"))
        qdiscs, *sides = far.qdiscs_and_filters()
        assert "clsact" in [qdisc["kind"] for qdisc in qdiscs]
        assert {filter["pref"] for filter in sides[0] + sides[1]} == {9}
        far.run("tc", "qdisc", "del", "dev", far.interface, "clsact")


def test_filters_of_others_see_the_packets_that_we_let_pass(veth):
    near, far = veth
    attach(far.attachment("ingress"), Uniform(0), 0, QUIC)
    put_filter_that_drops(far, "ingress", "pref", "9")
    with closing(udp_socket(near)) as sender, closing(udp_socket(far)) as receiver:
        receiver.bind((far.ipv4, PORT))
        sender.sendto(bytes(4), (far.ipv4, PORT))
        assert far.counters_after(judged=1).dropped == 0
        assert numbers_received(receiver) == set()


def their_classic_program(namespace, _):
    put_filter_that_drops(namespace, "ingress", *OUR_PLACE)


def their_bpf_program(namespace, tmp_path):
    ours = (COMMAND.parent / "dropper.bpf.o").read_bytes()
    theirs = tmp_path / "theirs.o"
    theirs.write_bytes(ours.replace(b"fecbench_drop", b"somebody_else"))
    to = ("dev", namespace.interface, "ingress", *OUR_PLACE)
    namespace.run("tc", "filter", "add", *to, "bpf", "da", "obj", str(theirs), "sec", "tc")


@pytest.mark.parametrize("put_theirs", [their_classic_program, their_bpf_program])
def test_a_program_of_somebody_else_at_our_place_is_refused_and_stays(veth, tmp_path, put_theirs):
    _, far = veth
    far.run("tc", "qdisc", "add", "dev", "far0", "clsact")
    put_theirs(far, tmp_path)
    before = far.qdiscs_and_filters()
    for refusal in (lambda place: attach(place, Uniform(0.1), 0), show, log, detach):
        with pytest.raises(
            DropperError, match=r"^dropper: far0 ingress: .* is held by a filter of somebody else$"
        ):
            refusal(far.attachment("ingress"))
    assert far.qdiscs_and_filters() == before
    attach(far.attachment("egress"), Uniform(0.1), 0)  # which is free
    detach(far.attachment("egress"))
    assert far.qdiscs_and_filters() == before


def test_a_failed_attach_changes_nothing(veth):
    _, far = veth
    attach(far.attachment("egress"), Uniform(0), 0)  # which makes the qdisc
    put_filter_that_drops(
        far, "ingress", "pref", "2", "protocol", "ip"
    )  # where only filters for IP may come now
    before = far.qdiscs_and_filters()
    with pytest.raises(DropperError, match="cannot attach to far0 ingress"):
        attach(far.attachment("ingress"), Uniform(0), 0)
    assert far.qdiscs_and_filters() == before


def test_an_ingress_qdisc_of_others_has_no_egress_for_us(veth):
    _, far = veth
    far.run("tc", "qdisc", "add", "dev", "far0", "ingress")
    with pytest.raises(DropperError, match="far0 has an ingress qdisc"):
        attach(far.attachment("egress"), Uniform(0), 0)


def test_an_ingress_qdisc_of_another_interface_is_none_of_ours(lone):
    lone.run("tc", "qdisc", "add", "dev", "spare0", "ingress")
    attach(lone.attachment("egress"), Uniform(0), 0)
    detach(lone.attachment("egress"))
    lone.run("tc", "qdisc", "del", "dev", "spare0", "ingress")


# ---- Where, and what is shown ----


def test_a_namespace_is_named_by_path_name_or_process(veth):
    _, far = veth
    attach(far.attachment("ingress"), Uniform(0.25), 17, QUIC)
    inside = subprocess.Popen(
        ["ip", "netns", "exec", far.name, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        inside.stdin.write(b"inside\n")
        inside.stdin.flush()
        assert inside.stdout.readline() == b"inside\n"
        output = [
            show(Attachment(netns, "far0", "ingress")) for netns in (far.path, far.name, str(inside.pid))
        ]
    finally:
        inside.communicate()
    assert output[0] == output[1] == output[2]


def test_where_nothing_is_attached_there_is_nothing_to_read(lone):
    detach(lone.attachment("ingress"))
    for action in (show, log):
        with pytest.raises(DropperError, match=r"^dropper: lone0 ingress: no dropper is attached$"):
            action(lone.attachment("ingress"))


def test_an_interface_without_ethernet_headers_is_refused(quiet_namespaces):
    with quiet_namespaces("tun0") as [namespace]:
        namespace.run("ip", "tuntap", "add", "dev", "tun0", "mode", "tun")
        with pytest.raises(DropperError, match="--dev tun0: must be an interface with Ethernet headers"):
            attach(namespace.attachment("ingress"), Uniform(0), 0)


def test_an_interface_or_namespace_that_is_not_there_is_named(lone):
    with pytest.raises(DropperError, match="--dev nowhere0: no such interface"):
        show(Attachment(lone.path, "nowhere0", "ingress"))
    with pytest.raises(DropperError, match="--netns /run/netns/nowhere: cannot open"):
        show(Attachment("/run/netns/nowhere", "lone0", "ingress"))


def test_the_printed_log_is_a_drop_list_that_gives_the_same_losses_again(lone, run_program, quic_frame):
    place = ["--netns", lone.path, "--dev", "lone0", "--ingress"]
    attachment = lone.attachment("ingress")

    def judged():
        with run_program(lone) as program:
            program.run(quic_frame, repeat=3000)
        return unpack(log(attachment).bitmap, 3000)

    attach(attachment, BURSTY, SEED)
    first = judged()
    printed = subprocess.run(
        [COMMAND, "log", *place], check=True, capture_output=True, text=True
    ).stdout.strip()
    subprocess.run(
        [COMMAND, "attach", *place, "--model", "pattern", "--drop", printed], check=True, capture_output=True
    )
    assert "-" in printed
    assert np.array_equal(judged(), first)


def test_show_says_what_was_configured(lone):
    attach(
        lone.attachment("ingress"), Pattern((3,), 10, True), 2**64 - 1, Filter("ipv6", "tcp", 443), record=128
    )
    document = lone.json_of("show", "ingress")
    assert document["seed"] == 2**64 - 1
    assert document["filter"] == {"family": "ipv6", "protocol": "tcp", "port": 443}
    assert (document["model"]["model"], document["model"]["length"], document["model"]["repeat"]) == (
        "pattern",
        10,
        True,
    )
    assert document["record"] == 128
