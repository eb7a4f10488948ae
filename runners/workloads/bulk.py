"""The workloads `download` and `upload`: one object, in one direction."""

from typing import ClassVar

from runners.workloads.workload import Workload, size_bytes


class Download(Workload):
    name = asked_for = "download"
    summary = "The server sends one object to the client."
    parameters: ClassVar = {"size_bytes": size_bytes()}


class Upload(Workload):
    name = asked_for = "upload"
    summary = "The client sends one object to the server."
    parameters: ClassVar = {"size_bytes": size_bytes()}
