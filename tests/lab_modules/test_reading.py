"""`spark.plane.probe`, `docker_facts` and the secrets of `files` against a real host: what they say is what is."""

from __future__ import annotations

import time

import pytest

from tests.lab_modules.conftest import Host
from tests.plays import Played, Task

pytestmark = pytest.mark.lab

SECRET = "hunter2-not-for-the-journal"
OVERRIDE = "/etc/systemd/system/docker.service.d/override.conf"
CONTENT = """\
[Service]
ExecStart=
ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock \\
  --live-restore --log-opt max-size=5m $DOCKER_OPTS
"""


def shell(name: str, command: str) -> Task:
    return {"name": name, "ansible.builtin.shell": command, "changed_when": False}


def write(name: str, path: str, content: str) -> Task:
    return {"name": name, "spark.plane.files": {"files": [{"dest": path, "content": content}]}}


def facts(name: str) -> Task:
    return {"name": name, "spark.plane.docker_facts": {}, "check_mode": True}


@pytest.fixture(scope="module")
def docker(host: Host) -> Played:
    return host.play(
        [
            shell("begin", "systemctl start docker; rm -f /etc/docker/daemon.json"),
            facts("running"),
            shell(
                "says", "docker version -f '{{ \"{{.Server.Version}} {{.Server.APIVersion}} {{.Server.MinAPIVersion}}\" }}'"
            ),
            shell("pid", "systemctl show -P MainPID docker"),
            write("break", "/etc/docker/daemon.json", '{\n  "live-restore": true,\n}\n'),
            shell("freeze", "kill -STOP $(systemctl show -P MainPID docker)"),
            facts("hung"),
            shell("thaw", "kill -CONT $(systemctl show -P MainPID docker)"),
            shell("stop", "systemctl stop docker.service"),
            facts("stopped"),
            shell("still stopped", "systemctl show -P ActiveState docker.service docker.socket"),
            {
                "name": "override",
                "spark.plane.files": {
                    "directories": [{"path": OVERRIDE.rpartition("/")[0]}],
                    "files": [
                        {
                            "dest": OVERRIDE,
                            "content": CONTENT,
                        },
                        {"dest": "/etc/default/docker", "content": "DOCKER_OPTS='--insecure-registry 192.0.2.1:5000'\n"},
                        {"dest": "/etc/docker/daemon.json", "json": {"live-restore": True, "insecure-registries": ["x"]}},
                    ],
                },
            },
            shell(
                "reload", "systemctl daemon-reload; systemctl start docker.service; systemctl reset-failed docker.service"
            ),
            facts("conflicting"),
            shell("refuses", "journalctl -u docker.service -o cat | grep -o 'the following directives .*' | tail -1"),
            shell("remove", f"rm -r {OVERRIDE} /etc/default/docker /etc/docker/daemon.json; systemctl daemon-reload"),
            shell("end", "systemctl reset-failed docker.service docker.socket; systemctl start docker"),
        ]
    )


def test_a_running_engine_is_read_without_its_command(docker: Played) -> None:
    seen = docker["running"]["docker_facts"]
    versions = f"{seen['server_version']} {seen['api_version']} {seen['min_api_version']}"
    assert versions == docker["says"]["stdout"]
    assert (seen["running"], seen["error"], seen["info"]["storage_driver"]) == (True, None, "overlay2")
    assert seen["unit"]["main_pid"] == int(docker["pid"]["stdout"])
    assert seen["packages"]["docker.io"].startswith("26.")
    assert seen["flags"]["hosts"]["value"] == ["fd://"]
    assert seen["daemon_json"] == {
        "path": "/etc/docker/daemon.json",
        "exists": False,
        "content": None,
        "error": None,
        "sha256": None,
    }


def test_a_hung_engine_is_given_up_and_named(docker: Played) -> None:
    seen = docker["hung"]["docker_facts"]
    assert (seen["running"], seen["unit"]["active"]) == (False, "active")
    assert seen["error"] == "/run/docker.sock: no answer to GET /version within 5 s"


def test_a_broken_daemon_json_is_named_by_line(docker: Played) -> None:
    error = docker["hung"]["docker_facts"]["daemon_json"]["error"]
    assert error.startswith("/etc/docker/daemon.json is not JSON: ")
    assert "at line 3 column 1" in error or "at line 2 column 23" in error


def test_a_stopped_engine_stays_stopped(docker: Played) -> None:
    assert docker["stopped"]["docker_facts"]["running"] is False
    assert docker["still stopped"]["stdout_lines"][0] == "inactive"
    assert docker["still stopped"]["stdout_lines"][-1] == "active"


def test_flags_that_dockerd_itself_calls_conflicting_are_found(docker: Played) -> None:
    seen = docker["conflicting"]["docker_facts"]
    flags = seen["flags"]
    assert flags["live-restore"] == {"value": True, "where": f"{OVERRIDE}:3", "flag": "--live-restore", "merged": False}
    assert flags["log-opts"]["value"] == ["max-size=5m"]
    assert flags["insecure-registries"]["where"] == "/etc/default/docker:1"
    both = sorted(set(flags) & set(seen["daemon_json"]["content"]))
    assert both == ["insecure-registries", "live-restore"]
    for key in both:
        assert key in docker["refuses"]["stdout"]


def test_a_probe_agrees_with_the_hosts_own_tools(host: Host) -> None:
    seen = host.play(
        [
            shell("prepare", "apt-mark hold docker.io containerd >/dev/null; mkdir -p /etc/systemd/journald.conf.d"),
            write("journald", "/etc/systemd/journald.conf.d/50-test.conf", "[Journal]\nSystemMaxUse=123M\n"),
            {
                "name": "probe",
                "spark.plane.probe": {
                    "packages": ["docker*", "containerd", "chrony"],
                    "units": ["ssh", "docker.socket", "nope"],
                    "sysctl": ["net.ipv4.ip_forward", "kernel.hostname"],
                    "modules": ["overlay"],
                    "files": ["/etc/hostname", "/nope"],
                },
            },
            shell(
                "ssh", "systemctl show -P MainPID ssh; hostname; cat /proc/sys/kernel/random/boot_id; systemd-detect-virt"
            ),
            shell("limits", "systemctl show -P DefaultLimitNOFILE; sha256sum < /etc/hostname"),
            shell("unhold", "apt-mark unhold docker.io containerd >/dev/null; rm -r /etc/systemd/journald.conf.d"),
        ]
    )
    probe = seen["probe"]["probe"]
    pid, hostname, boot, virt = seen["ssh"]["stdout_lines"]
    assert not seen["probe"]["changed"]
    assert (probe["units"]["ssh"]["main_pid"], probe["units"]["ssh"]["active"]) == (int(pid), "active")
    assert probe["units"]["ssh"]["exec_start"].startswith("/usr/sbin/sshd")
    assert (probe["units"]["docker.socket"]["sub"], probe["units"]["nope"]["load"]) == ("running", "not-found")
    assert (probe["hostname"], probe["boot_id"], probe["virt"]) == (hostname, boot, virt)
    assert probe["matched"] == {"docker*": ["docker-cli", "docker.io"]}
    assert [probe["packages"][name]["held"] for name in ("docker.io", "containerd", "docker-cli")] == [True, True, False]
    assert probe["packages"]["chrony"]["version"] is None
    assert [str(probe["limits"]["nofile"][1]), probe["files"]["/etc/hostname"]["sha256"]] == [
        line.split()[0] for line in seen["limits"]["stdout_lines"]
    ]
    assert probe["sysctl"]["kernel.hostname"] == hostname
    assert probe["journald"]["SystemMaxUse"] == "123M"
    assert (probe["clock"]["source"], probe["errors"]) == ("timedatectl", [])


def test_a_secret_is_in_neither_output_nor_journal(host: Host) -> None:
    begun = time.time()
    file = {"dest": "/root/secret", "content": "{{ word }}\n", "secret": True, "mode": "0600"}
    task: Task = {"name": "write", "spark.plane.files": {"files": [file]}}
    refused = {**file, "dest": "/root/other", "validate": "sh -c 'cat %s; exit 1'"}
    refuse: Task = {"name": "refuse", "spark.plane.files": {"files": [refused]}}
    seen = host.play([task, refuse], "--diff", "-vvvv", word=SECRET)
    assert host.sh("cat /root/secret; stat -c %a /root/secret") == f"{SECRET}\n600"
    journal = host.sh(f"journalctl -o cat --since @{int(begun)}")
    assert "/root/secret" in journal, "the module's call is logged on the host"
    assert SECRET not in journal
    assert "its output is withheld" in seen["refuse"]["msg"]
    assert SECRET not in seen.text
    assert host.sh("ls /run/ | grep spark-plane- || true") == ""
