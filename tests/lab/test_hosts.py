"""What a host of the lab is: real where it can be, closed to the outside, and harmless to the machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.lab import Lab, cables
from provision.lab.paths import PROJECT_ROOT

pytestmark = pytest.mark.lab


def run(lab: Lab, host: str, script: str) -> str:
    """Output of a shell script on a host; fails with its errors."""
    done = lab.exec(host, ["bash", "-euo", "pipefail", "-c", script])
    assert done.returncode == 0, f"{host}: {done.stdout}{done.stderr}"
    return done.stdout


def each(lab: Lab, script: str) -> dict[str, str]:
    return {host: run(lab, host, script).strip() for host in lab.hosts()}


def test_every_host_runs_its_own_systemd(lab: Lab) -> None:
    seen = each(lab, "systemctl is-system-running; ps -o comm= -p 1; hostname; cat /etc/machine-id")
    for host, text in seen.items():
        running, init, hostname, _ = text.split()
        assert (running, init) == ("running", "systemd"), host
        assert hostname.startswith("spark-")
        assert hostname not in lab.hosts()
    assert len({text.split()[2] for text in seen.values()}) == 5
    assert len({text.split()[3] for text in seen.values()}) == 5


def test_hardware_identities_differ(lab: Lab) -> None:
    for file in ("/proc/sys/kernel/random/boot_id", "/sys/class/dmi/id/product_uuid"):
        assert len(set(each(lab, f"cat {file}").values())) == 5, file


def test_no_host_has_a_way_out(lab: Lab) -> None:
    script = """
        ! ip route get 8.8.8.8 2>&1
        ! ip -6 route get 2001:db8::1 2>&1
        ip -j route show default
        ! getent hosts example.org
    """
    for host, text in each(lab, script).items():
        assert "unreachable" in text, host
        assert text.splitlines()[-1] in ("[]", "[ ]"), host
    machine = subprocess.run(["ip", "-j", "address"], capture_output=True, text=True, check=True).stdout
    names = {link["ifname"] for link in json.loads(machine)}
    assert not names & {"br0", "enP7s7", "eno1", "enp1s0f0np0", "m-0"}
    assert "10.77.0." not in machine


def test_the_inventory_never_dials_an_address(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = PROJECT_ROOT / "inventory" / "lab"
    monkeypatch.setenv("SPARK_PLANE_LAB", lab.name)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(inventory), "--list"],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for host, variables in json.loads(done.stdout)["_meta"]["hostvars"].items():
        assert "ansible_host" not in variables, host
        arguments = variables["ansible_ssh_extra_args"]
        assert "ProxyCommand" in arguments
        assert "ip netns exec" in arguments
        assert "socat STDIO TCP:127.0.0.1:22" in arguments


def test_our_own_ssh_never_dials_an_address(lab: Lab) -> None:
    command = " ".join(lab.ssh("spark-a"))
    assert f"ip netns exec {lab.name}.spark-a socat STDIO TCP:127.0.0.1:22" in command
    assert "StrictHostKeyChecking=yes" in command
    assert "10.77" not in command


def test_words_reach_the_host_as_they_are(lab: Lab) -> None:
    done = lab.exec("spark-a", ["printf", "%s|", "a b", "$HOME", "'", ""])
    assert done.stdout == "a b|$HOME|'||"


@pytest.mark.parametrize("half", [0, 1])
def test_each_cable_carries_9000_byte_frames_between_the_right_ports(lab: Lab, half: int) -> None:
    made = cables.cables(lab.hosts())
    assert len(made) == 4
    try:
        for number, cable in enumerate(made):
            near, far = cables.PORTS[cable.port][half][0], cables.PORTS[cable.peer_port][half][0]
            run(lab, cable.host, f"ip link set {near} mtu 9000; ip address add 10.9.{number}.1/24 dev {near}")
            run(lab, cable.peer, f"ip link set {far} mtu 9000; ip address add 10.9.{number}.2/24 dev {far}")
        for number, cable in enumerate(made):
            run(lab, cable.host, f"ping -q -c 1 -W 2 -M do -s 8972 10.9.{number}.2")
    finally:
        for cable in made:
            for host, port in ((cable.host, cable.port), (cable.peer, cable.peer_port)):
                netdev = cables.PORTS[port][half][0]
                lab.exec(host, ["sh", "-c", f"ip -4 address flush dev {netdev}; ip link set {netdev} mtu 1500"])


def test_hcas_are_shown_on_the_ring_only(lab: Lab) -> None:
    script = """
        cd /sys/class/infiniband
        for hca in *; do echo $hca $(ls $hca/device/net) $(cat $hca/ports/1/{link_layer,state,rate}); done
    """
    lines = run(lab, "spark-c", script).splitlines()
    assert sorted(line.split()[:2] for line in lines) == [
        ["roceP2p1s0f0", "enP2p1s0f0np0"],
        ["roceP2p1s0f1", "enP2p1s0f1np1"],
        ["rocep1s0f0", "enp1s0f0np0"],
        ["rocep1s0f1", "enp1s0f1np1"],
    ]
    assert all("Ethernet 4: ACTIVE 200 Gb/sec (4X HDR)" in line for line in lines)
    assert run(lab, "spark-e", "test ! -e /sys/class/infiniband; ls -d /sys/class/net/eno1").strip()


SETTINGS = {
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "vm.swappiness": "7",
    "fs.inotify.max_user_instances": "9999",
    "fs.file-max": "1234567",
    "net.core.rmem_max": "134217728",
    "net.core.somaxconn": "7777",
    "net.ipv4.ip_forward": "1",
}


def machine_settings() -> dict[str, str]:
    return {name: Path("/proc/sys", *name.split(".")).read_text() for name in SETTINGS}


def test_sysctls_stay_in_the_host(lab: Lab) -> None:
    before, neighbour = machine_settings(), run(lab, "spark-d", f"sysctl {' '.join(SETTINGS)}")
    values = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
    run(lab, "spark-c", f"sysctl -qw {values}")
    seen = dict(line.split(" = ") for line in run(lab, "spark-c", f"sysctl {' '.join(SETTINGS)}").splitlines())
    assert seen == SETTINGS
    assert machine_settings() == before
    assert run(lab, "spark-d", f"sysctl {' '.join(SETTINGS)}") == neighbour


def test_a_shorter_value_replaces_a_longer_one(lab: Lab) -> None:
    """As the kernel does; systemd-sysctl does not truncate what it writes to."""
    script = """
        sysctl -qw vm.max_map_count=1048576
        echo vm.max_map_count = 65536 >/run/sysctl.d/lab-test.conf
        /usr/lib/systemd/systemd-sysctl
        sleep 0.2
        cat /proc/sys/vm/max_map_count
    """
    assert run(lab, "spark-b", "mkdir -p /run/sysctl.d;" + script) == "65536\n"


def test_a_host_cannot_act_on_the_machine(lab: Lab) -> None:
    now = time.time()
    script = """
        ! date -s 2001-01-01 2>/dev/null
        swapoff -a
        test ! -e /proc/sysrq-trigger || echo b >/proc/sysrq-trigger
        ! modprobe dummy 2>/dev/null
        ! sh -c 'echo mem >/sys/power/state' 2>/dev/null
        systemctl restart systemd-modules-load systemd-sysctl
    """
    run(lab, "spark-b", script)
    assert abs(time.time() - now) < 60


def test_docker_runs_containers(lab: Lab) -> None:
    script = """
        tar -c -C / bin/busybox usr/bin/busybox 2>/dev/null | docker import - lab/box:1 >/dev/null
        r="docker run --rm --pull never"
        $r lab/box:1 /usr/bin/busybox echo plain
        $r --privileged lab/box:1 /usr/bin/busybox echo privileged
        $r --ulimit nofile=1048576:1048576 --ulimit memlock=-1 lab/box:1 /usr/bin/busybox echo limits
        $r --memory 64m --network host lab/box:1 /usr/bin/busybox echo host
        docker info --format '{{.Driver}} {{.DefaultRuntime}}'
        test ! -e /etc/docker/daemon.json
        docker image rm lab/box:1 >/dev/null
    """
    assert run(lab, "spark-e", script).split() == ["plain", "privileged", "limits", "host", "overlay2", "runc"]


def back(lab: Lab, host: str) -> None:
    """Wait until a host that is going down has come back."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done = lab.exec(host, ["systemctl", "is-system-running", "--wait"])
        if done.stdout.strip() in ("running", "degraded"):
            return
        time.sleep(0.1)
    raise AssertionError(f"{host} did not come back")


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(lambda lab, host: lab.exec(host, ["systemctl", "reboot"]), id="reboot"),
        pytest.param(lambda lab, host: (lab.power_off(host), lab.power_on(host)), id="power-off-and-on"),
    ],
)
def test_a_boot_is_a_boot(lab: Lab, again: Callable[[Lab, str], object]) -> None:
    """Files stay; what lives in memory, the namespace and the firewall does not."""
    look = """
        cat /proc/sys/kernel/random/boot_id /proc/sys/vm/swappiness
        ip -o -4 address | grep -c 10.8.8 || true
        nft list tables | grep -c lab_test || true
        ls /var/kept /run/gone 2>/dev/null || true
        sysctl -n net.ipv4.tcp_fin_timeout
    """
    host = "spark-d"
    fresh = run(lab, host, look).split()
    change = """
        sysctl -qw vm.swappiness=11 net.ipv4.tcp_fin_timeout=13
        ip address add 10.8.8.8/24 dev enp1s0f0np0
        nft add table inet lab_test
        touch /var/kept /run/gone
    """
    run(lab, host, change)
    again(lab, host)
    back(lab, host)
    seen = run(lab, host, look).split()
    assert seen[0] != fresh[0]
    assert seen[1:] == [*fresh[1:4], "/var/kept", *fresh[4:]]
    run(lab, host, "rm /var/kept")
    assert run(lab, "spark-a", "cat /sys/class/net/enp1s0f1np1/carrier").strip() == "1"
    assert {one.host: one.state for one in lab.status().hosts}[host] == "running"


def test_a_host_without_power_is_gone_for_its_neighbours(lab: Lab) -> None:
    lab.power_off("spark-b")
    try:
        assert {one.host: one.state for one in lab.status().hosts}["spark-b"] == "off"
        assert lab.exec("spark-b", ["true"], timeout=20).returncode == 255
        assert run(lab, "spark-a", "cat /sys/class/net/enp1s0f0np0/carrier").strip() == "0"
    finally:
        lab.power_on("spark-b")
    assert run(lab, "spark-a", "cat /sys/class/net/enp1s0f0np0/carrier").strip() == "1"


def test_poweroff_inside_leaves_it_off_until_the_next_up(bare: Lab) -> None:
    bare.exec("spark-a", ["systemctl", "poweroff"])
    deadline = time.monotonic() + 30
    while bare.running("spark-a") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not bare.running("spark-a")
    bare.up()
    assert run(bare, "spark-a", "systemctl is-system-running").strip() == "running"


def test_reset_gives_a_new_disk_and_the_same_identity(bare: Lab) -> None:
    before = run(bare, "spark-a", "hostname; cat /etc/machine-id; touch /root/old /var/lib/docker/old")
    assert (bare.upper("spark-a") / "root/old").exists()
    bare.reset("spark-a")
    assert run(bare, "spark-a", "hostname; cat /etc/machine-id; test ! -e /root/old -a ! -e /var/lib/docker/old") == before
    assert not (bare.upper("spark-a") / "root/old").exists()


def test_packages_install_from_the_local_repository(bare: Lab) -> None:
    script = """
        export DEBIAN_FRONTEND=noninteractive
        test ! -e /usr/bin/dockerd
        apt-get -qq update
        apt-get -qq install -y chrony jq >/dev/null
        systemctl is-active chrony
        tr '\\0' ' ' </proc/$(systemctl show -P MainPID chrony)/cmdline
        cat /etc/apt/sources.list.d/*
        ls /etc/apt/sources.list 2>/dev/null || true
    """
    text = run(bare, "spark-a", script)
    assert "active\n/usr/sbin/chronyd -x -F 0" in text
    assert text.count("URIs:") == 1
    assert "file:/srv/apt" in text
    assert "sources.list\n" not in text


@pytest.mark.long
def test_docker_can_be_installed_on_a_bare_host(bare: Lab) -> None:
    script = """
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq install -y docker.io docker-cli >/dev/null
        systemctl is-active docker
        tar -c -C / usr/bin/busybox | docker import - lab/box:1 >/dev/null
        docker run --rm --pull never --privileged lab/box:1 /usr/bin/busybox echo ran
    """
    assert run(bare, "spark-a", script).split() == ["active", "ran"]


@pytest.mark.long
def test_every_offered_package_installs(bare: Lab) -> None:
    from provision.lab import aptrepo

    for name in aptrepo.PACKAGES:
        run(bare, "spark-a", f"apt-get -qq --simulate install {name} >/dev/null")


def test_cpu_time_is_counted_per_host(lab: Lab) -> None:
    before = {host: lab.cpu_seconds(host) for host in ("spark-a", "spark-e")}
    work = "python3 -c 'import time; sum(range(10**7)); print(time.process_time())'"
    used = float(run(lab, "spark-e", work))
    assert lab.cpu_seconds("spark-e") - before["spark-e"] >= used
    assert before["spark-a"] > 0


def test_status_says_what_is_real(lab: Lab) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "provision", "lab", "status", "--json", "--name", lab.name],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    state = json.loads(done.stdout)
    assert state["up"] is True
    assert [host["host"] for host in state["hosts"]] == lab.hosts()
    assert [host["rank"] for host in state["hosts"]] == [0, 1, 2, 3, None]
    kinds = {part["name"]: part["real"] for part in state["components"]}
    assert kinds["Docker Engine, containerd"] is True
    assert kinds["ring cables"] is False
