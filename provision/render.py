"""How a run looks: the table of phases, the summary under it, and the block that explains a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from provision.receipt import (
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_JUDGED,
    NOT_PROVABLE,
    PASSED,
    PENDING,
    RUNNING,
    PhaseRecord,
    Receipt,
    SiteRecord,
)

PICTURE_WIDTH = 124
_FONTS = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"
_MARKS = {
    DONE: ("✓", "*", "green"),
    FAILED: ("✗", "x", "red"),
    INTERRUPTED: ("■", "!", "yellow"),
    RUNNING: ("▶", ">", "cyan"),
    PENDING: ("·", ".", "dim"),
}
_STYLES = {"ok": "green", "changed": "yellow", "failed": "bold red"}
_GATE_STYLES = {PASSED: "green", NOT_PROVABLE: "magenta", FAILED: "bold red", NOT_JUDGED: "dim"}


def duration(seconds: float | None) -> str:
    """Return *seconds* as people read them: `0.4 s`, `12.3 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def counted(number: int, noun: str) -> str:
    """Return *number* with *noun* in the plural where it should be."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def gate_words(phase: PhaseRecord) -> list[tuple[str, str]]:
    """Return the gates of *phase* as (words, status), the worst first; none where the phase has no gate yet."""
    words = []
    for status in (FAILED, NOT_PROVABLE, NOT_JUDGED, PASSED):
        hosts = {gate.host for gate in phase.gates if gate.status == status}
        if hosts:
            words.append((f"{len(hosts)} {status}", status))
    return words


def phase_table(
    receipt: Receipt,
    *,
    ascii_only: bool = False,
    seconds: Callable[[PhaseRecord], float | None] | None = None,
    now: RenderableType | None = None,
    mark: RenderableType | None = None,
) -> Table:
    """Return the table of phases. While a run is under way, *mark* and *now* stand in the running phase's row."""
    table = Table(box=None, pad_edge=False, expand=True, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", width=1)
    table.add_column("phase", no_wrap=True)
    for outcome in ("ok", "changed", "failed"):
        table.add_column(outcome, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True, min_width=7)
    table.add_column("gate", no_wrap=True)
    table.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    for phase in receipt.phases:
        cells = _cells(phase, ascii_only, seconds(phase) if seconds else phase.seconds)
        if phase.status == RUNNING:
            cells[0], cells[-1] = mark or cells[0], now or cells[-1]
        table.add_row(*cells)
    return table


def _cells(phase: PhaseRecord, ascii_only: bool, seconds: float | None) -> list[RenderableType]:
    sign, plain, style = _MARKS[phase.status]
    running = phase.status == RUNNING
    cells: list[RenderableType] = [Text(plain if ascii_only else sign, style)]
    cells.append(Text(phase.name, "bold" if running else "dim" if phase.status == PENDING else ""))
    for outcome in ("ok", "changed", "failed"):
        count = len(phase.hosts_with(outcome))
        cells.append(Text(str(count) if phase.hosts else "", _STYLES[outcome] if count else "dim"))
    cells.append(Text(duration(seconds)))
    gate = Text()
    for words, status in gate_words(phase):
        gate.append(", " if gate else "").append(words, _GATE_STYLES.get(status, ""))
    cells.append(gate)
    cells.append(Text(phase.title, "dim" if phase.status == PENDING else ""))
    return cells


def heading(receipt: Receipt, hosts: int, elapsed: float | None) -> Table:
    """Return the line over the table: verb, site, hosts, and the time so far."""
    left = Text.assemble((f"{receipt.verb}", "bold"), f"  {site_words(receipt.site)}", f"  {counted(hosts, 'host')}")
    if receipt.limit:
        left.append(f"  limit {receipt.limit}", "yellow")
    if receipt.mode == "check":
        left.append("  check: nothing is changed", "yellow")
    if receipt.resumed_from:
        left.append(f"  resumes {receipt.resumed_from}", "cyan")
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1)
    grid.add_column(justify="right")
    grid.add_row(left, Text(duration(elapsed), "dim"))
    return grid


def site_words(site: SiteRecord) -> str:
    """Return the name of *site*, with that of the lab where it is another."""
    return site.name if site.instance in (None, site.name) else f"{site.name} ({site.instance})"


def summary(
    receipt: Receipt,
    hosts: int,
    *,
    ascii_only: bool = False,
    files: dict[str, str] | None = None,
    then: Sequence[str] = (),
) -> Group:
    """Return the whole of a finished run: heading, table, notes, and how it ended.

    *files* are named among the notes; *then* holds the commands that go on after a run that did not end well.
    """
    parts: list[RenderableType] = [heading(receipt, hosts, receipt.seconds), Text()]
    parts += [phase_table(receipt, ascii_only=ascii_only), Text(), _notes(receipt, hosts, files or {}), Text()]
    parts.append(failure_block(receipt, then) if receipt.failure else _verdict(receipt))
    return Group(*parts)


def _notes(receipt: Receipt, hosts: int, files: dict[str, str]) -> Table:
    notes = _grid()
    told = receipt.failure.host if receipt.failure else None
    for line in failed_checks(receipt, but=told):
        notes.add_row(Text("failed check", "red"), line)
    for line in not_provable(receipt, hosts):
        notes.add_row(Text("not provable here", "magenta"), line)
    if receipt.standins:
        notes.add_row(Text("stand-ins", "magenta"), ", ".join(part.component for part in receipt.standins))
    for name, path in files.items():
        notes.add_row(Text(name, "dim"), Text(path, "dim"))
    return notes


def _grid() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _verdict(receipt: Receipt) -> Text:
    """Return how a run that ended well ended."""
    changes = sum(counts.changed for phase in receipt.phases for counts in phase.hosts.values())
    on = len({host for phase in receipt.phases for host in phase.hosts_with("changed")})
    would = "would change" if receipt.mode == "check" else "changed"
    changed = f"{counted(changes, 'task result')} {would}, on {counted(on, 'host')}" if changes else f"nothing {would}"
    return Text.assemble((receipt.status, "bold green"), f" in {duration(receipt.seconds)}: {changed}")


def host_list(names: Iterable[str], total: int) -> str:
    """Return *names* in order, or `all N hosts` when they are all there are."""
    listed = sorted(set(names))
    return f"all {total} hosts" if len(listed) == total > 2 else ", ".join(listed)


def not_provable(receipt: Receipt, total: int) -> list[str]:
    """Return one line per reason why something could not be proven here, with the hosts (of *total*) it holds for."""
    hosts: dict[str, list[str]] = {}
    for phase in receipt.phases:
        for gate in phase.gates:
            for check in gate.checks:
                if check.status == NOT_PROVABLE:
                    line = f"{gate.name}: {check.what}" + (f" ({check.reason})" if check.reason else "")
                    hosts.setdefault(line, []).append(gate.host)
    return [f"{line} on {host_list(names, total)}" for line, names in hosts.items()]


def failed_checks(receipt: Receipt, *, but: str | None = None) -> list[str]:
    """Return one line per failed check of a gate: what, on which host (leaving out the host *but*), seen and wanted."""
    lines = []
    for phase in receipt.phases:
        for gate in phase.gates:
            for check in gate.checks:
                if check.status == FAILED and gate.host != but:
                    line = f"{gate.name} on {gate.host}: {check.what}"
                    if check.wanted is not None or check.seen is not None:
                        line += f": seen {check.seen}, wanted {check.wanted}"
                    lines.append(line + (f" ({check.reason})" if check.reason else ""))
    return lines


def failure_block(receipt: Receipt, then: Sequence[str] = ()) -> Table:
    """Return what a person needs after a run that did not end well: host, task, reason, and the way on."""
    failure = receipt.failure
    assert failure is not None
    what = f"phase {failure.phase}" if failure.phase else "before the first phase"
    if failure.hosts:
        what += f" on {', '.join(failure.hosts)}"
    table = _grid()
    table.add_row(Text(failure.kind, "bold red"), Text(f"{what}, after {duration(receipt.seconds)}", "bold"))
    rows = {"task": failure.task, "reason": failure.message, "where": failure.where}
    for name, text in rows.items():
        if text:
            table.add_row(Text(name, "dim"), Text(text))
    for number, command in enumerate(then):
        table.add_row(Text("" if number else "then", "dim"), Text(command, "cyan"))
    return table


def save_picture(path: Path, renderable: RenderableType, title: str) -> None:
    """Write *renderable* as an SVG picture of a terminal window titled *title*.

    Raises:
        OSError: the file cannot be written.

    """
    with Path("/dev/null").open("w") as nowhere:
        console = Console(record=True, width=PICTURE_WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(renderable)
        picture = console.export_svg(title=title)
    # A picture that loads nothing: rich's own names a font on a server.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    path.write_text(picture.replace("Fira Code, monospace", _FONTS), encoding="utf-8")
