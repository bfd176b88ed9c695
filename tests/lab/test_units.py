"""The parts of the lab that need no host."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from provision.lab import Lab, LabError, NeedError, cables, cgroups, identity, kernel, layers, mirror, needs, settings
from provision.lab.paths import check_name, host_names
from provision.lab.process import Process, locked, read_json, write_json
from provision.lab.standins import load_rdma


def test_cables_close_the_ring() -> None:
    hosts = host_names(5)
    made = [(cable.host[-1], cable.port, cable.peer[-1], cable.peer_port) for cable in cables.cables(hosts)]
    assert made == [("a", 0, "b", 1), ("b", 0, "c", 1), ("c", 0, "d", 1), ("d", 0, "a", 1)]


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [
        (1, [], []),
        (2, ["enp1s0f0np0", "enP2p1s0f0np0"], ["enp1s0f0np0", "enP2p1s0f0np0"]),
        (3, ["enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1"], None),
        (5, ["enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1"], []),
    ],
)
def test_interfaces_follow_the_cables(count: int, first: list[str], last: list[str] | None) -> None:
    hosts = host_names(count)
    assert cables.fabric_interfaces(hosts, hosts[0]) == first
    assert cables.fabric_interfaces(hosts, hosts[-1]) == (first if last is None else last)


def test_the_fifth_host_is_off_the_ring() -> None:
    hosts = host_names(5)
    assert [cables.management(hosts, host) for host in hosts] == ["enP7s7"] * 4 + ["eno1"]


def test_identities_are_distinct_and_stay() -> None:
    hosts = host_names(16)
    names = identity.factory_names("one", hosts)
    assert len(set(names.values())) == 16
    assert names == identity.factory_names("one", hosts)
    assert identity.machine_id("one", "spark-a") != identity.machine_id("two", "spark-a")


@pytest.mark.parametrize("name", ["", "Lab", "1lab", "a b", "a/b", "..", "a.b", "x" * 21])
def test_a_name_that_cannot_be_a_namespace_is_refused(name: str) -> None:
    with pytest.raises(NeedError, match="lab name"):
        check_name(name)


@pytest.mark.parametrize("count", [0, 17])
def test_host_counts_have_bounds(count: int) -> None:
    with pytest.raises(NeedError, match="1 to 16"):
        host_names(count)


# Mirrors

_DEBIAN = "http://m/debian/\tDebian\tDebian\tbookworm\tmain"
_SECURITY = "http://m/debian-security/\tDebian\tDebian-Security\tbookworm-security\tmain"
_DOCKER = "https://d/linux/debian/\tDocker\tDocker CE\tbookworm\tstable"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([_DOCKER, _DEBIAN, _SECURITY], ("http://m/debian/", "http://m/debian-security/")),
        ([_DEBIAN], ("http://m/debian/", None)),
        # Lists never fetched: no origin and no label.
        (
            ["http://proxy/apt/deb-all/\t\t\ttrixie\tmain", "http://proxy/apt/sec/\t\t\ttrixie-security\tmain"],
            ("http://proxy/apt/deb-all/", "http://proxy/apt/sec/"),
        ),
        (["http://m/debian/\tDebian\tDebian\tbookworm-updates\tmain", _DEBIAN], ("http://m/debian/", None)),
        (
            ["mirror+file:/etc/apt/mirrors/debian.list\tDebian\tDebian\tstable\tmain"],
            ("mirror+file:/etc/apt/mirrors/debian.list", None),
        ),
        ([_DOCKER], None),
        (["http://u/ubuntu/\tUbuntu\tUbuntu\tnoble\tmain"], None),
        ([], None),
        (["garbage"], None),
    ],
)
def test_the_mirror_is_the_machines_own(lines: list[str], expected: tuple[str, str | None] | None) -> None:
    found = mirror.parse_targets("\n".join(lines))
    assert (None if found is None else (found.main, found.security)) == expected


def test_a_mirror_without_security_gives_no_security_source() -> None:
    assert not any("security" in line for line in mirror.Mirror("http://m/debian", None).sources("trixie"))


# Control groups

_HYBRID = """\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,xattr,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,release_agent=/lib/systemd/agent,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
42 31 0:38 / /elsewhere rw,relatime - cgroup2 cgroup2 rw
22 27 0:21 / /proc rw,relatime - proc proc rw
"""


def test_hierarchies_are_read_from_the_mounts() -> None:
    found = cgroups.parse_mounts(_HYBRID)
    assert [(str(one.path), one.v2, one.options) for one in found] == [
        ("/sys/fs/cgroup/cpu", False, "cpu"),
        ("/sys/fs/cgroup/cpu,cpuacct", False, "cpu,cpuacct"),
        ("/sys/fs/cgroup/systemd", False, "none,name=systemd"),
        ("/sys/fs/cgroup/unified", True, ""),
    ]
    assert cgroups.layout(found) == "hybrid"
    assert cgroups.layout(found[3:]) == "v2"
    assert cgroups.layout(found[:3]) == "v1"


# Needs: each absent in turn


def _text(home: Path) -> str:
    with pytest.raises(NeedError) as caught:
        needs.check(home)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_not_linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    text = _text(tmp_path)
    assert "Linux: this is darwin" in text
    assert "What works instead" in text


def test_not_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root: running as uid 1000" in _text(tmp_path)


def test_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=2 * 2**30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    text = _text(tmp_path / "not" / "there")
    assert "disk space: 2.0 GiB free" in text
    assert "SPARK_PLANE_HOME" in text


def test_no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = shutil.which

    def which(tool: str, path: str | None = None) -> str | None:
        return None if tool in ("mmdebstrap", "ip") else real(tool, path=path)

    monkeypatch.setattr(shutil, "which", which)
    text = _text(tmp_path)
    assert "not found: ip, mmdebstrap" in text
    assert "apt-get install iproute2 mmdebstrap" in text


@pytest.mark.parametrize(
    ("call", "named"),
    [("mount", "overlay file system"), ("unshare", "network namespaces with veth")],
)
def test_a_kernel_that_refuses(call: str, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, call, refuse)
    text = _text(tmp_path)
    assert named in text
    assert "Operation not permitted" in text


def test_nothing_missing_says_nothing(tmp_path: Path) -> None:
    needs.check(tmp_path)
    assert not list(tmp_path.iterdir())


# Processes and files


def test_a_reused_pid_is_not_killed() -> None:
    me = Process.of(os.getpid())
    for other in (Process(me.pid, me.start - 1, me.boot), Process(me.pid, me.start, "another boot")):
        assert not other.alive
        other.kill()
    assert me.alive


def test_a_lock_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock", "first", 1),
        pytest.raises(LabError, match="second: another process"),
        locked(tmp_path / "lock", "second", 0.1),
    ):
        pass


def test_half_a_state_file_counts_as_none(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    write_json(file, {"a": 1})
    assert read_json(file) == {"a": 1}
    file.write_text(file.read_text()[:-4])
    assert read_json(file) is None


@pytest.mark.parametrize(("written", "kept"), [("1\n36\n", "1\n"), ("1\n", "1\n"), ("1\n\n", "1\n"), ("12", "12"), ("", "")])
def test_a_setting_keeps_its_first_line(written: str, kept: str, tmp_path: Path) -> None:
    file = tmp_path / "setting"
    file.write_text(written)
    settings.cut(file)
    assert file.read_text() == kept


# The cache


class _Slow(layers.Cache):
    """A cache whose layers are made of sleep."""

    built = 0

    def make(self, fail: bool = False) -> Path:
        def build(result: Path) -> None:
            type(self).built += 1
            result.mkdir()
            (result / "half").touch()
            time.sleep(0.1)
            if fail:
                raise LabError("mirror gone")
            (result / "whole").touch()

        return self._built("rootfs-test-0", "test layer", build)


def test_an_interrupted_build_is_never_used(tmp_path: Path) -> None:
    cache = _Slow(tmp_path)
    (tmp_path / ".building-rootfs-test-0-999").mkdir()
    with pytest.raises(LabError, match="mirror gone"):
        cache.make(fail=True)
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []
    assert (cache.make() / "whole").exists()


def test_two_builders_build_once(tmp_path: Path) -> None:
    _Slow.built = 0
    threads = [threading.Thread(target=_Slow(tmp_path).make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _Slow.built == 1


def test_pruning_keeps_what_a_lab_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = layers.Cache(tmp_path / "cache")
    for name in ("rootfs-bare-new", "rootfs-bare-old", "rootfs-bare-used", "apt-new", "apt-used", "apt-old"):
        (cache.root / name).mkdir(parents=True)
    (tmp_path / "labs/one").mkdir(parents=True)
    used = {"layers": [str(cache.root / "rootfs-bare-used")], "repository": str(cache.root / "apt-used")}
    write_json(tmp_path / "labs/one/lab.json", used)
    monkeypatch.setattr(cache, "layers", lambda _: [cache.root / "rootfs-bare-new"])
    monkeypatch.setattr(cache, "repository", lambda: cache.root / "apt-new")
    assert sorted(path.name for path in cache.prune(tmp_path / "labs")) == ["apt-old", "rootfs-bare-old"]
    assert len(list(cache.root.iterdir())) == 4


def test_an_unknown_flavour_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NeedError, match="flavour 'x': there are bare, spark"):
        layers.Cache(tmp_path).layers("x")


def test_a_lab_that_is_down_says_so(tmp_path: Path) -> None:
    nothing = Lab("nothing", tmp_path)
    assert nothing.hosts() == []
    assert not nothing.status().up
    with pytest.raises(NeedError, match="is down"):
        nothing.ssh("spark-a")


def test_a_standin_is_named_with_its_reason() -> None:
    standins = {part.name: part.detail for part in Lab("nothing").standins()}
    assert any("ConnectX-7" in name for name in standins)
    assert all(standins.values())


# Stand-ins


def test_an_hca_shows_what_its_netdev_is(tmp_path: Path) -> None:
    tree = load_rdma()
    net, target = tmp_path / "net", tmp_path / "infiniband"
    for name, carrier in (("enp1s0f0np0", "1"), ("enP2p1s0f0np0", "0")):
        (net / name).mkdir(parents=True)
        (net / name / "address").write_text("02:00:5e:10:20:30\n")
        (net / name / "carrier").write_text(carrier)
    tree.build(target, net)
    state = {hca.name: (hca / "ports/1/state").read_text().strip() for hca in target.iterdir()}
    assert state == {
        "rocep1s0f0": "4: ACTIVE",
        "rocep1s0f1": "1: DOWN",
        "roceP2p1s0f0": "1: DOWN",
        "roceP2p1s0f1": "1: DOWN",
    }
    port = target / "rocep1s0f0/ports/1"
    assert (port / "gids/1").read_text() == "fe80:0000:0000:0000:0000:5eff:fe10:2030\n"
    assert (port / "gid_attrs/types/1").read_text() == "RoCE v2\n"
    assert not (port / "gid_attrs/types/2").exists()
    assert [path.name for path in (target / "rocep1s0f0/device/net").iterdir()] == ["enp1s0f0np0"]
    assert list((target / "rocep1s0f1/device/net").iterdir()) == []


def test_an_address_adds_two_gids(tmp_path: Path) -> None:
    tree = load_rdma()
    tree.write_gids(tmp_path, "enp1s0f0np0", tree.gid_table("02:00:5e:10:20:30", ["10.20.0.11"]))
    assert (tmp_path / "gids/3").read_text() == "0000:0000:0000:0000:0000:ffff:0a14:000b\n"
    tree.write_gids(tmp_path, "enp1s0f0np0", tree.gid_table("02:00:5e:10:20:30", []))
    assert (tmp_path / "gids/3").read_text().strip() == tree.EMPTY_GID
    assert not (tmp_path / "gid_attrs/types/3").exists()
