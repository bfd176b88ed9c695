"""What a prepared host looks like from inside."""

from __future__ import annotations

from typing import Any

import pytest


def test_name(host: Any) -> None:
    assert host.check_output("hostname") == "spark-a"
    assert host.file("/etc/hostname").content_string.strip() == "spark-a"


def test_own_name_is_the_management_address(host: Any) -> None:
    assert host.check_output("getent hosts spark-a").split()[0] == "10.77.0.11"


def test_foreign_lines_of_etc_hosts_stay(host: Any) -> None:
    assert "localhost" in host.file("/etc/hosts").content_string


@pytest.mark.parametrize("name", ["chrony", "conntrack", "jq", "rsync", "socat"])
def test_packages(host: Any, name: str) -> None:
    assert host.package(name).is_installed


@pytest.mark.parametrize(
    ("key", "value"),
    [("vm.overcommit_memory", 1), ("kernel.panic", 10), ("kernel.panic_on_oops", 1), ("net.ipv4.ip_forward", 1)],
)
def test_kernel_settings_are_live(host: Any, key: str, value: int) -> None:
    assert host.sysctl(key) == value


def test_clock_follows_a_source(host: Any) -> None:
    chrony = host.service("chrony")
    assert chrony.is_running and chrony.is_enabled
    assert "Leap status     : Normal" in host.check_output("chronyc tracking")


def test_no_swap_line(host: Any) -> None:
    assert not host.run("grep -E '^[^#].*\\sswap\\s' /etc/fstab").stdout


def test_limits_of_new_services(host: Any) -> None:
    shown = host.check_output("systemctl show --property DefaultLimitNOFILE").strip()
    wanted = host.check_output("sed -n s/^DefaultLimitNOFILE=//p /etc/systemd/system.conf.d/90-spark-plane.conf")
    assert shown == f"DefaultLimitNOFILE={wanted.strip()}"


def test_journal_has_a_ceiling(host: Any) -> None:
    assert "SystemMaxUse=2G" in host.check_output("systemd-analyze cat-config systemd/journald.conf")
