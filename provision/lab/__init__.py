"""The lab: real hosts, each with its own init and network, on one Linux machine."""

from provision.lab.errors import LabError, NeedError
from provision.lab.lab import Lab
from provision.lab.standins import Component
from provision.lab.state import HostStatus, LabStatus

__all__ = ["Component", "HostStatus", "Lab", "LabError", "LabStatus", "NeedError"]
