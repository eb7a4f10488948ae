"""A wrong command line is refused in one line: option, value and what would be right. Needs no root."""

import subprocess

import pytest

from fecbench.dropper.command import COMMAND, Attachment, DropperError, show

PLACE = ["--dev", "nowhere0", "--ingress"]
ATTACH = ["attach", *PLACE]
PATTERN = [*ATTACH, "--model", "pattern"]


def run(*arguments, **options):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, **options)


WRONG = [
    ([], "what to do is missing: attach, show, log, detach or help"),
    (["atach", *PLACE], "atach: must be attach, show, log, detach or help"),
    (["show"], "--dev is missing: the interface"),
    (["show", "--dev"], "--dev: its value is missing"),
    (["show", "--dev", "nowhere0"], "one of --ingress and --egress is needed"),
    (["show", *PLACE, "--egress"], "one of --ingress and --egress is needed"),
    (["show", *PLACE, "--ingress"], "--ingress: given twice"),
    (["show", *PLACE, "now"], "now: an option was expected; see dropper help"),
    (
        ["show", *PLACE, "--sead", "1"],
        "--sead: no such option, or a value for one that takes none; see dropper help",
    ),
    (["show", *PLACE, "--seed", "1"], "--seed: only attach takes it"),
    (ATTACH, "--model is missing: none, uniform, ge, markov, pattern, beginning, ge-time or slots"),
    (
        [*ATTACH, "--model", "gilbert"],
        "--model gilbert: must be none, uniform, ge, markov, pattern, beginning, ge-time or slots",
    ),
    ([*ATTACH, "--model", "ge-time", "--good-s", "1"], "--bad-s is missing: model ge-time needs it"),
    ([*ATTACH, "--model", "ge", "--good-s", "1"], "--good-s: model ge does not take it"),
    *(
        (
            [*ATTACH, "--model", "ge-time", "--good-s", time, "--bad-s", "1"],
            f"--good-s {time}: must be a time from 1e-05 to 4000",
        )
        for time in ("0", "4001", "nan", "1s", " 1", "")
    ),
    (
        [*ATTACH, "--model", "slots", "--slot-ms", "0.5", "--drop", "1"],
        "--slot-ms 0.5: must be a time from 1 to 1000",
    ),
    ([*ATTACH, "--model", "slots", "--slot-ms", "1"], "--drop is missing: model slots needs it"),
    ([*ATTACH, "--model", "uniform"], "--p is missing: model uniform needs it"),
    ([*ATTACH, "--model", "ge", "--p", ".1"], "--r is missing: model ge needs it"),
    (
        [*ATTACH, "--model", "markov", "--p", "0", "--r", "0", "--k", "1"],
        "--k: model markov does not take it",
    ),
    ([*ATTACH, "--model", "none", "--p", "0"], "--p: model none does not take it"),
    *(
        ([*ATTACH, "--model", "uniform", "--p", p], f"--p {p}: must be a probability, from 0 to 1")
        for p in ("1.01", "-0.1", "nan", "inf", "", "1%", " 0.5", "0,5")
    ),
    *(
        (
            [*ATTACH, "--model", "none", "--seed", seed],
            f"--seed {seed}: must be an integer from 0 to 18446744073709551615",
        )
        for seed in ("-1", "18446744073709551616", "0x10", "1.5", "")
    ),
    ([*ATTACH, "--model", "none", "--port", "0"], "--port 0: must be an integer from 1 to 65535"),
    ([*ATTACH, "--model", "none", "--port", "65536"], "--port 65536: must be an integer from 1 to 65535"),
    ([*ATTACH, "--model", "none", "--family", "ip"], "--family ip: must be any, ipv4 or ipv6"),
    ([*ATTACH, "--model", "none", "--protocol", "quic"], "--protocol quic: must be any, udp or tcp"),
    ([*ATTACH, "--model", "none", "--record", "0"], "--record 0: must be an integer from 1 to 16777216"),
    ([*ATTACH, "--model", "beginning", "--p", "1"], "--length is missing: model beginning needs it"),
    (
        [*ATTACH, "--model", "beginning", "--p", "1", "--length", "0"],
        "--length 0: must be at least 1 for model beginning",
    ),
    (PATTERN, "--drop is missing: model pattern needs it"),
    ([*PATTERN, "--drop", "1", "--pattern-file", "x"], "--pattern-file: --drop is given, too"),
    ([*PATTERN, "--drop", "3,x"], '--drop: "x" where a packet index was expected, as in 3,7-9'),
    ([*PATTERN, "--drop", "3;4"], '--drop: ";4" after an index: separate indices by commas, as in 3,7-9'),
    ([*PATTERN, "--drop", "9-7"], "--drop: 9-7: a range goes from the smaller index to the larger"),
    ([*PATTERN, "--drop", "16777216"], "--drop: index 16777216: must be less than 16777216"),
    (
        [*PATTERN, "--drop", "5", "--length", "5"],
        "--length 5: packet 5 is dropped, so the pattern is at least 6 long",
    ),
    (
        [*PATTERN, "--pattern-file", "/nowhere"],
        "--pattern-file: cannot read /nowhere: No such file or directory",
    ),
    (
        [*PATTERN, "--pattern-file", str(COMMAND)],
        f"--pattern-file: {COMMAND} is not a text file: it should be a list as in 3,7-9",
    ),
    ([*ATTACH, "--losses", "/nowhere"], "--losses: cannot read /nowhere: No such file or directory"),
    ([*ATTACH, "--losses", "/dev/stdin", "--p", "1"], "--p: --losses has it"),
]


def test_a_wrong_command_line_is_refused_in_one_line():
    for arguments, line in WRONG:
        result = run(*arguments)
        assert (result.returncode, result.stdout, result.stderr) == (2, "", f"dropper: {line}\n")


WRONG_TEXTS = [
    ("", "--losses: /dev/stdin is empty: it should be lines as in model ge"),
    ("p 1", "--model is missing: none, uniform, ge, markov, pattern, beginning, ge-time or slots"),
    ("model uniform\np 2\n", "--p 2: must be a probability, from 0 to 1"),
    ("model uniform\np 1\np 1\n", "--p: given twice"),
    ("model uniform\n\np 1\n", "--losses: a line: no parameter of losses has this name"),
    ("model ge\ngood-s 1\n", "--losses: good-s: no parameter of losses has this name"),
    ("model slots\nslot_ms 5\ndrop 1\nrepeat yes\n", "--repeat yes: must be true or false"),
    ("model uniform\np \x1b[31m\n", "--p ?[31m: must be a probability, from 0 to 1"),
]


def test_a_wrong_text_of_losses_is_refused_in_one_line_that_names_it():
    for text, line in WRONG_TEXTS:
        result = run(*ATTACH, "--losses", "/dev/stdin", input=text)
        assert (result.returncode, result.stdout, result.stderr) == (2, "", f"dropper: {line}\n")


def test_help_is_printed():
    result = run("help")
    assert result.returncode == 0
    assert "dropper attach PLACE MODEL" in result.stdout


def test_an_answer_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        result = subprocess.run([COMMAND, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (
        1,
        "dropper: cannot write the answer: No space left on device\n",
    )


def test_a_failure_raises_the_line_of_the_command():
    with pytest.raises(
        DropperError, match=r"^dropper: --dev nowhere0: no such interface in this network namespace$"
    ):
        show(Attachment(None, "nowhere0", "ingress"))


def test_a_command_that_is_not_built_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("fecbench.dropper.command.COMMAND", tmp_path / "build" / "dropper")
    with pytest.raises(DropperError, match="is not built: make -C"):
        show(Attachment(None, "nowhere0", "ingress"))
