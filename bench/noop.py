"""What a run of the plane costs when there is nothing to do.

    python -m bench.noop [--json] [-i SITE] [--count-ssh]

The plane is run until a run changes nothing (two runs at most before the measured one), then measured once, beside
`ansible all -m ping` on the same hosts. Figures:

    tasks_per_host  module calls that ran on the busiest host; tasks that only the controller worked on are counted apart
    cpu_seconds     CPU time of the controller's processes and of all processes on the hosts
    wall_seconds    from start to end of ansible-playbook
    ping_ratio      CPU time of the plane over CPU time of the ping (wall time moves with other load)
    changed         changed results over all hosts; 0 is wanted
    restarts        services that run as another process, or another invocation, than before; 0 is wanted
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from provision.errors import EXIT_FAILED, BadInput, ProvisionError
from provision.lab import Lab, cgroups
from provision.lab.paths import PROJECT_ROOT

CONVERGING_RUNS = 2
_CALLBACKS = Path(__file__).parent / "callbacks"
# The controller's own control group, beside the hosts': ssh and its proxies are counted, though ssh outlives the run.
_GROUP = "controller"
# Sessions come and go with every login; they are no service of the plane's.
_SESSIONS = ("user@", "user-runtime-dir@")
_UNIT_PROPERTIES = "Id,MainPID,InvocationID,TriggeredBy"


@dataclass(frozen=True)
class Cost:
    """What one command cost. CPU time in seconds, split by where it was spent."""

    wall: float
    controller: float
    hosts: float
    records: list[dict[str, object]]
    output: str

    @property
    def cpu(self) -> float:
        """CPU time in all, in seconds."""
        return self.controller + self.hosts


@dataclass(frozen=True)
class Figures:
    """The benchmark's result; the keys are fixed, other tools read them."""

    tasks_per_host: int
    cpu_seconds: float
    wall_seconds: float
    ping_ratio: float
    changed: int
    restarts: int
    hosts: int
    controller_tasks: int
    controller_cpu_seconds: float
    hosts_cpu_seconds: float
    ping_cpu_seconds: float
    ping_wall_seconds: float
    module_calls: dict[str, int]
    calls_by_host: dict[str, int]
    restarted: list[str]
    ssh_calls_per_host: int | None = None


class Bench:
    """Runs commands of Ansible on a lab's hosts and says what each cost."""

    def __init__(self, lab: Lab, site: Path) -> None:
        self.lab = lab
        self.site = site
        self._procs = cgroups.create(lab.name, _GROUP)

    def run(self, program: str, *arguments: str, verbose: bool = False) -> Cost:
        """Run an Ansible program on the site. Raises ProvisionError with the end of its output when it fails."""
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "log"
            environment = {
                **os.environ,
                "SPARK_PLANE_LAB": self.lab.name,
                "SPARK_PLANE_HOME": str(self.lab.paths.home),
                "ANSIBLE_CALLBACK_PLUGINS": str(_CALLBACKS),
                "ANSIBLE_CALLBACKS_ENABLED": "module_calls",
                "ANSIBLE_FORCE_COLOR": "0",
                "SPARK_PLANE_BENCH_LOG": str(log),
            }
            command = [str(Path(sys.executable).with_name(program)), "-i", str(self.site), *arguments]
            controller, hosts, start = self._controller_cpu(), self._hosts_cpu(), time.monotonic()
            done = subprocess.run(
                [*command, "-vvv"] if verbose else command,
                cwd=PROJECT_ROOT,
                env=environment,
                capture_output=True,
                text=True,
                preexec_fn=lambda: cgroups.join(self._procs),
                check=False,
            )
            wall = time.monotonic() - start
            if done.returncode:
                tail = (done.stdout + done.stderr).splitlines()[-25:]
                raise ProvisionError(f"{program} ended with {done.returncode}", *tail)
            return Cost(
                wall=wall,
                controller=self._controller_cpu() - controller,
                hosts=self._hosts_cpu() - hosts,
                records=[json.loads(line) for line in log.read_text().splitlines()] if log.exists() else [],
                output=done.stdout,
            )

    def plane(self, *, verbose: bool = False) -> Cost:
        """Run the plane's phases."""
        return self.run("ansible-playbook", "site.yml", "--tags", "plane", verbose=verbose)

    def ping(self) -> Cost:
        """Run the cheapest task there is on every host."""
        return self.run("ansible", "all", "-m", "ansible.builtin.ping")

    def units(self) -> dict[str, tuple[str, str]]:
        """(main pid, invocation) of each service of each host that runs, by `host service`.

        Services that a timer starts, and login sessions, come and go by themselves and are left out.
        """
        found = {}
        for host in self.lab.hosts():
            text = self.lab.exec(
                host, ["systemctl", "show", "--type=service", "--all", f"--property={_UNIT_PROPERTIES}", "*"], check=True
            ).stdout
            for block in text.strip().split("\n\n"):
                unit = dict(line.partition("=")[::2] for line in block.splitlines())
                own = not unit.get("Id", "").startswith(_SESSIONS) and ".timer" not in unit.get("TriggeredBy", "")
                if own and unit.get("InvocationID"):
                    found[f"{host} {unit['Id']}"] = (unit["MainPID"], unit["InvocationID"])
        return found

    def _controller_cpu(self) -> float:
        return cgroups.cpu_seconds(self.lab.name, _GROUP)

    def _hosts_cpu(self) -> float:
        return sum(self.lab.cpu_seconds(host) for host in self.lab.hosts())


def changes(cost: Cost) -> int:
    """Results that say changed, over all hosts."""
    return sum(1 for record in cost.records if record["kind"] == "task" and record["changed"])


def count_calls(cost: Cost) -> tuple[Counter[str], Counter[str], int]:
    """Module calls per host, per action, and the number of tasks on which no host had anything to do."""
    calls = [record for record in cost.records if record["kind"] == "module" and record["on_host"]]
    by_host = Counter(str(record["host"]) for record in calls)
    by_action = Counter(str(record["action"]) for record in calls)
    acted = {record["action"] for record in calls}
    controller = {record["uuid"] for record in cost.records if record["kind"] == "task" and record["action"] not in acted}
    return by_host, by_action, len(controller)


def count_ssh(cost: Cost, hosts: list[str]) -> int:
    """Commands sent by ssh to the busiest host, read from a -vvv output: the cross-check of `count_calls`."""
    counts = Counter(host for line in cost.output.splitlines() for host in hosts if line.startswith(f"<{host}> SSH: EXEC"))
    return max(counts.values(), default=0)


def measure(bench: Bench, say: Console, *, ssh: bool) -> Figures:
    """Converge, then measure one run of the plane that has nothing to do."""
    say.print("ping, to open the connections")
    bench.ping()
    for number in range(1, CONVERGING_RUNS + 1):
        say.print(f"converging run {number}")
        changed = changes(bench.plane())
        if not changed:
            break
    say.print("measured: ping, then the plane")
    ping = bench.ping()
    before = bench.units()
    cost = bench.plane()
    after = bench.units()
    restarted = sorted(unit for unit, state in before.items() if after.get(unit) != state)
    by_host, by_action, controller = count_calls(cost)
    return Figures(
        tasks_per_host=max(by_host.values(), default=0),
        cpu_seconds=round(cost.cpu, 2),
        wall_seconds=round(cost.wall, 2),
        ping_ratio=round(cost.cpu / ping.cpu, 2) if ping.cpu else 0.0,
        changed=changes(cost),
        restarts=len(restarted),
        hosts=len(bench.lab.hosts()),
        controller_tasks=controller,
        controller_cpu_seconds=round(cost.controller, 2),
        hosts_cpu_seconds=round(cost.hosts, 2),
        ping_cpu_seconds=round(ping.cpu, 2),
        ping_wall_seconds=round(ping.wall, 2),
        module_calls=dict(by_action.most_common()),
        calls_by_host=dict(sorted(by_host.items())),
        restarted=restarted,
        ssh_calls_per_host=count_ssh(bench.plane(verbose=True), bench.lab.hosts()) if ssh else None,
    )


def show(figures: Figures, console: Console) -> None:
    """Print the figures for a person."""
    table = Table("figure", "value", title=f"the plane with nothing to do, {figures.hosts} hosts")
    for name, value in asdict(figures).items():
        if value is not None:
            text = ", ".join(f"{key} {number}" for key, number in value.items()) if isinstance(value, dict) else str(value)
            table.add_row(name, text)
    console.print(table)


@click.command()
@click.option("-i", "site", default="lab", show_default=True, help="The site; CPU time of hosts needs the lab's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--count-ssh", is_flag=True, help="Run once more with -vvv and count what ssh was told to run.")
def main(site: str, as_json: bool, count_ssh: bool) -> None:
    """Measure what a run of the plane costs when there is nothing to do."""
    try:
        if site != "lab":
            raise BadInput(f"-i {site}: hosts' CPU time can be read in the lab only (-i lab)")
        lab = Lab(say=lambda line: click.echo(line, err=True))
        lab.up()
        figures = measure(Bench(lab, PROJECT_ROOT / "inventory" / "lab"), Console(stderr=True), ssh=count_ssh)
    except ProvisionError as error:
        click.echo(f"bench.noop: {error}", err=True)
        sys.exit(error.exit_code)
    if as_json:
        click.echo(json.dumps(asdict(figures), indent=2))
    else:
        show(figures, Console())
    if figures.changed or figures.restarts:
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
