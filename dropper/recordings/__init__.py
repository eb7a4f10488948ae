"""Recorded losses: which packets of a recording were lost, one after another. A module for each form.

- A list: 0 for each packet that came and 1 for each that was lost.
- A log of the sender (qlog, or Chromium's NetLog): the packets that it sent, and those that it declared lost.
  Gaps in the numbers of a receiver would tell less: some stacks skip numbers.
- Packet captures of both sides (pcap or pcapng): packets that the sender's has, and the receiver's lacks.
- A packet capture of the receiver alone, where packets carry sequence numbers: the gaps in these.

All of them may be packed by gzip. Any other file is refused in one line that names it.
"""

from fecbench.dropper.recordings.packet import Packet, packets
from fecbench.dropper.recordings.reading import read, recorded
from fecbench.dropper.recordings.recording import DIRECTIONS, MOST_PACKETS, Recording, Verdicts, drop_list
from fecbench.dropper.recordings.sequence_number import Sequence

__all__ = [
    "DIRECTIONS",
    "MOST_PACKETS",
    "Packet",
    "Recording",
    "Sequence",
    "Verdicts",
    "drop_list",
    "packets",
    "read",
    "recorded",
]
