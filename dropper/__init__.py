"""The eBPF loss injector: its command, and the oracle that predicts every verdict."""
