"""`spark.plane.probe` reads what is in force, not what one file says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.spark.plane.plugins.module_utils import clock, dpkg, hostfacts, systemd
from ansible_collections.spark.plane.plugins.modules import probe

STATUS = """\
Package: chrony
Status: install ok installed
Architecture: arm64
Version: 4.6.1-3
Conffiles:
 /etc/chrony/chrony.conf 0123
Description: time daemon
 Package: not a field
 .
 Version: 9 is not one either

Package: linux-image-6.14-nvidia
Status: hold ok installed
Architecture: arm64
Version: 6.14.0-1013.13

Package: linux-image-6.11-nvidia
Status: deinstall ok config-files
Architecture: arm64
Version: 6.11.0-1

Package: half
Status: install reinstreq half-installed
Architecture: arm64
Version: 1

Package: broken
Status: install reinstreq installed
Architecture: arm64
Version: 1

Package: libc6
Status: install ok installed
Architecture: armhf
Version: 2.39

Package: libc6
Status: deinstall ok config-files
Architecture: arm64
Version: 2.38
"""


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_packages_by_name_and_pattern(tmp_path: Path) -> None:
    put(tmp_path, "var/lib/dpkg/status", STATUS)
    seen = dpkg.query(["chrony", "half", "broken", "nope", "libc6", "linux-image-*", "kernel-*"], tmp_path)
    assert seen.packages == {
        "chrony": dpkg.Package("4.6.1-3", False, "arm64"),
        "half": dpkg.Package(None, False, "arm64"),
        "broken": dpkg.Package(None, False, "arm64"),
        "nope": dpkg.Package(None, False),
        "libc6": dpkg.Package("2.39", False, "armhf"),
        "linux-image-6.14-nvidia": dpkg.Package("6.14.0-1013.13", True, "arm64"),
    }
    assert seen.matched == {"linux-image-*": ["linux-image-6.14-nvidia"], "kernel-*": []}
    assert not seen.interrupted


def test_a_held_name_that_is_not_installed(tmp_path: Path) -> None:
    put(tmp_path, "var/lib/dpkg/status", "Package: a\nStatus: hold ok not-installed\nVersion: 1\n")
    assert dpkg.query(["a"], tmp_path).packages["a"] == dpkg.Package(None, True)


def test_dpkg_that_was_killed_is_seen(tmp_path: Path) -> None:
    put(tmp_path, "var/lib/dpkg/updates/tmp.i", "")
    assert not dpkg.query([], tmp_path).interrupted
    put(tmp_path, "var/lib/dpkg/updates/0003", "")
    assert dpkg.query([], tmp_path).interrupted


def test_a_host_without_dpkg_has_no_packages(tmp_path: Path) -> None:
    assert dpkg.query(["a", "b*"], tmp_path) == dpkg.Query({"a": dpkg.Package(None, False)}, {"b*": []}, False)


@pytest.mark.skipif(not Path("/var/lib/dpkg/status").exists(), reason="not a Debian machine")
def test_it_agrees_with_dpkg_query() -> None:
    form = "${db:Status-Abbrev}|${Package}|${Version}\n"
    output = subprocess.run(["dpkg-query", "-W", f"-f={form}"], capture_output=True, text=True, check=True).stdout
    lines = [line.split("|") for line in output.splitlines()]
    wanted = {name: version for state, name, version in lines if state[1] == "i"}
    seen = dpkg.query(["*"])
    assert sorted(wanted) == seen.matched["*"]
    assert {name: package.version for name, package in seen.packages.items()} == wanted


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("vm.swappiness", "vm/swappiness"),
        ("net.ipv4.conf.eth0/100.mtu", "net/ipv4/conf/eth0.100/mtu"),
        ("net/ipv4/conf/eth0.100/mtu", "net/ipv4/conf/eth0.100/mtu"),
    ],
)
def test_sysctl_keys(key: str, path: str, tmp_path: Path) -> None:
    put(tmp_path, f"proc/sys/{path}", "4096\t131072   6291456\n")
    assert hostfacts.sysctls([key, "no.such"], tmp_path) == {key: "4096 131072 6291456", "no.such": None}


def test_kernel_modules(tmp_path: Path) -> None:
    tree = f"lib/modules/{os.uname().release}"
    put(tmp_path, "proc/modules", "br_netfilter 32768 0 - Live 0x0\nbridge 1 1 br_netfilter, Live 0x0\n")
    put(tmp_path, f"{tree}/modules.builtin", "kernel/fs/overlayfs/overlay.ko\n")
    put(tmp_path, f"{tree}/modules.dep", "kernel/net/ip-vs.ko.zst: kernel/lib/crc.ko.zst\nkernel/lib/crc.ko.zst:\n")
    (tmp_path / "sys/module/tcp_bbr").mkdir(parents=True)
    names = ["br_netfilter", "br-netfilter", "overlay", "tcp_bbr", "ip_vs", "crc", "netfilter", "nope"]
    assert hostfacts.modules(names, tmp_path) == {
        "br_netfilter": "loaded",
        "br-netfilter": "loaded",
        "overlay": "builtin",
        "tcp_bbr": "builtin",
        "ip_vs": "loadable",
        "crc": "loadable",
        "netfilter": "absent",
        "nope": "absent",
    }
    assert hostfacts.modules(["overlay"], tmp_path / "bare") == {"overlay": "absent"}


def test_files(tmp_path: Path) -> None:
    put(tmp_path, "a", "x")
    (tmp_path / "a").chmod(0o640)
    os.chown(tmp_path / "a", 0, 54321)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("no")
    seen = hostfacts.file(tmp_path / "a")
    assert seen == {
        "exists": True,
        "type": "file",
        "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
        "mode": "0640",
        "owner": "root",
        "group": "54321",
        "size": 1,
        "link": None,
    }
    assert hostfacts.file(tmp_path / "link") == {**seen, "link": "a"}
    assert hostfacts.file(tmp_path / "dangling") == {**dict.fromkeys(seen), "exists": False, "link": "no"}
    assert (hostfacts.file(tmp_path)["type"], hostfacts.file(tmp_path)["sha256"]) == ("directory", None)


def test_swap(tmp_path: Path) -> None:
    put(tmp_path, "proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/swap.img file 8388604 0 -2\n")
    put(
        tmp_path,
        "etc/fstab",
        "#/dev/sdb none swap sw 0 0\nUUID=1 / ext4 defaults 0 1\n/swap.img\tnone\tswap\tsw\t0\t0\n\nswap /mnt ext4\n",
    )
    assert hostfacts.swaps(tmp_path) == ["/swap.img"]
    assert hostfacts.fstab_swaps(tmp_path) == ["/swap.img\tnone\tswap\tsw\t0\t0"]
    assert (hostfacts.swaps(tmp_path / "no"), hostfacts.fstab_swaps(tmp_path / "no")) == ([], [])


def test_journald_settings_in_force(tmp_path: Path) -> None:
    put(tmp_path, "etc/systemd/journald.conf", "[Journal]\n#SystemMaxUse=9G\nSystemMaxUse=1G\nStorage=auto\n[X]\nA=1\n")
    put(tmp_path, "usr/lib/systemd/journald.conf", "[Journal]\nForwardToWall=no\n")
    put(tmp_path, "usr/lib/systemd/journald.conf.d/50.conf", "[Journal]\nSystemMaxUse=5G\nRateLimitBurst=1\n")
    put(tmp_path, "etc/systemd/journald.conf.d/50.conf", "[Journal]\nSystemMaxUse = 2G\n")
    put(tmp_path, "run/systemd/journald.conf.d/20.conf", "[Journal]\nSystemMaxUse=7G\nStorage=\n")
    put(tmp_path, "etc/systemd/journald.conf.d/60.txt", "[Journal]\nSystemMaxUse=8G\n")
    assert hostfacts.journald(tmp_path) == {"SystemMaxUse": "2G"}
    assert hostfacts.journald(tmp_path / "bare") == {}


TRACKING = "C0A80001,ntp.example,3,1700000000.1,-0.000012345,0.0,0.0,1.0,0.0,0.0,0.0,0.0,64.0,"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (TRACKING + "Normal\n", clock.Clock(True, "chrony", -0.000012345, "Normal", "ntp.example", 3)),
        (TRACKING + "Insert second\n", clock.Clock(True, "chrony", -0.000012345, "Insert second", "ntp.example", 3)),
        (
            "7F7F0101,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n",
            clock.Clock(False, "chrony", 0.0, "Not synchronised", "7F7F0101", 0),
        ),
        ("506 Cannot talk to daemon\n", clock.Clock()),
        ("", clock.Clock()),
        ("a,b,c,d,e,f,g,h,i,j,k,l,m,n", clock.Clock()),
    ],
)
def test_chrony_tracking(text: str, seen: clock.Clock) -> None:
    assert clock.parse_tracking(text) == seen


def test_timedated_is_asked_when_chrony_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "chronyc": systemd.Output(1, "506 Cannot talk to daemon"),
        "timedatectl": systemd.Output(0, "NTPSynchronized=no\n"),
    }
    monkeypatch.setattr(systemd, "run", lambda argv, _: answers[argv[0]])
    assert clock.read() == clock.Clock(synchronised=False, source="timedatectl")
    answers["timedatectl"] = systemd.Output(1, "Failed to connect to bus")
    assert clock.read() == clock.Clock()


def test_a_probe_reads_units_limits_and_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    unit = "Id=a.service\nLoadState=loaded\nActiveState=active\nSubState=running\nMainPID=7\nNRestarts=2\nResult=success\n"
    manager = (
        "Virtualization=\nDefaultLimitNOFILE=524288\nDefaultLimitNOFILESoft=1024\nDefaultLimitMEMLOCK=infinity\n"
        "DefaultLimitMEMLOCKSoft=8388608\n"
    )

    def run(argv: list[str], _: float) -> systemd.Output:
        calls.append(argv)
        if argv[0] == "chronyc":
            return systemd.Output(0, TRACKING + "Normal\n")
        return systemd.Output(0, unit if "--" in argv else manager)

    monkeypatch.setattr(systemd, "run", run)
    nothing: dict[str, list[str]] = {key: [] for key in ("packages", "sysctl", "modules", "files")}
    seen = probe.collect({**nothing, "units": ["a"], "clock": True})
    assert (seen["units"]["a"]["main_pid"], seen["units"]["a"]["restarts"], seen["virt"]) == (7, 2, "none")
    assert seen["limits"] == {"nofile": [1024, 524288], "memlock": [8388608, "infinity"]}
    assert (seen["clock"]["synchronised"], seen["errors"]) == (True, [])
    assert len(calls) == 3
    monkeypatch.setattr(systemd, "run", lambda *_: systemd.Output(1, "no bus"))
    seen = probe.collect({**nothing, "units": ["a"], "clock": False})
    assert (seen["units"], seen["virt"], seen["limits"]["nofile"], seen["clock"]) == ({"a": None}, None, [None, None], None)
    assert "no bus" in seen["errors"][0]
