"""Who tells a person how the run goes: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from provision.events import Progress
from provision.notices import Diff, HostFailed, Notice, Output, PhaseEnded, PhaseStarted, TaskEnded
from provision.render import duration, gate_words, heading, host_list, phase_table

# Four pictures a second look alive and cost 1 to 2 % of a core.
_REFRESH_HZ = 4
_PLAIN_WIDTH = 110


class View(Protocol):
    """What the runner tells, and to whom. *lock* is held while the run's state changes, never while telling."""

    console: Console
    lock: threading.RLock

    def say(self, line: str) -> None:
        """Tell something that is no part of a phase."""

    def begin(self, progress: Progress, hosts: list[str]) -> None:
        """The run begins."""

    def tell(self, notices: Iterable[Notice]) -> None:
        """Something happened."""

    def end(self) -> None:
        """The run is over; the summary follows."""


def make_view(*, json_output: bool, verbosity: int) -> View:
    """Return the view that fits where the output goes; with *json_output* stdout is left to the receipt."""
    console = Console(stderr=json_output, highlight=False, soft_wrap=False)
    if console.is_terminal and not console.is_dumb_terminal and not json_output:
        return LiveView(console, verbosity)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    return PlainView(console, verbosity)


def plain_marks(console: Console) -> bool:
    """Return True where the output's encoding has no signs beyond ASCII."""
    return not console.encoding.lower().startswith("utf")


def print_block(console: Console, renderable: RenderableType) -> None:
    """Print *renderable*; where it goes to a file, without the blanks that fill its lines up."""
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as captured:
        console.print(renderable)
    for line in captured.get().splitlines():
        console.out(line.rstrip(), highlight=False)


class PlainView:
    """One line per phase start and end, per task that changed something, and per failure; more with -v."""

    def __init__(self, console: Console, verbosity: int) -> None:
        self.console = console
        self.lock = threading.RLock()
        self._verbosity = verbosity
        self._total = 0
        self._check = False

    def say(self, line: str) -> None:
        """Print *line*."""
        self._print(Text(line))

    def begin(self, progress: Progress, hosts: list[str]) -> None:
        """Print nothing: the first phase tells."""
        self._total = len(hosts)
        self._check = progress.receipt.mode == "check"

    def tell(self, notices: Iterable[Notice]) -> None:
        """Print what a reader of a log wants."""
        for notice in notices:
            for line in self.lines(notice):
                self._print(line)

    def end(self) -> None:
        """Nothing to take down."""

    def lines(self, notice: Notice) -> list[Text]:
        """Return the lines that *notice* is worth at this verbosity."""
        match notice:
            case Output(text):
                return [Text(text, "dim")] if self._verbosity > 1 else []
            case PhaseStarted(phase):
                return [Text.assemble((phase.name, "bold"), f": starts ({phase.title})")]
            case PhaseEnded(phase):
                gates = ", ".join(words for words, _ in gate_words(phase))
                counts = ", ".join(f"{len(phase.hosts_with(outcome))} {outcome}" for outcome in ("ok", "changed", "failed"))
                line = f": {phase.status} in {duration(phase.seconds)}: hosts {counts}"
                return [Text.assemble((phase.name, "bold"), line, f"; gate {gates}" if gates else "")]
            case TaskEnded(phase, task, results):
                return self._task_lines(phase.name, task, results)
            case HostFailed(phase, task, host, message, unreachable):
                word = "unreachable" if unreachable else "failed"
                return [Text.assemble((phase.name, "bold"), ": ", (word, "red"), f": {host}: {task}: {message}")]
            case Diff(phase, task, host, text):
                head = Text.assemble((phase.name, "bold"), f": {host}: {task}")
                return [head, *(Text(line, _diff_style(line)) for line in text.splitlines())]

    def _task_lines(self, phase: str, task: str, results: dict[str, str]) -> list[Text]:
        words = ("changed",) if not self._verbosity else ("ok", "changed", "ignored", "skipped")
        lines = []
        for word in words:
            hosts = [host for host, result in results.items() if result == word]
            if hosts:
                style = "yellow" if word == "changed" else "dim"
                word = "would change" if word == "changed" and self._check else word
                lines.append(
                    Text.assemble((phase, "bold"), ": ", (word, style), f": {task} ({host_list(hosts, self._total)})")
                )
        return lines

    def _print(self, text: Text) -> None:
        # No wrapping by the console: a line of a log stays one line.
        self.console.print(text, soft_wrap=True)


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


class LiveView(PlainView):
    """The table, redrawn in place; diffs, failures and (with -v) tasks scroll by above it."""

    def __init__(self, console: Console, verbosity: int) -> None:
        super().__init__(console, verbosity)
        self._live: Live | None = None
        self._progress: Progress | None = None
        self._begun = time.monotonic()
        self._note = ""
        self._spinner = None if plain_marks(console) else Spinner("dots", style="cyan")

    def say(self, line: str) -> None:
        """Show *line* under the table, or print it while there is none."""
        if self._live:
            self._note = line
        else:
            self.console.print(Text(line, "dim"))

    def begin(self, progress: Progress, hosts: list[str]) -> None:
        """Put the table up."""
        super().begin(progress, hosts)
        self._progress, self._begun = progress, time.monotonic()
        self._live = Live(get_renderable=self._render, console=self.console, refresh_per_second=_REFRESH_HZ, transient=True)
        self._live.start()

    def end(self) -> None:
        """Take the table down; the summary stands in its place."""
        if self._live:
            self._live.stop()
            self._live = None

    def lines(self, notice: Notice) -> list[Text]:
        """Leave out what the table itself shows."""
        table_shows = isinstance(notice, (PhaseStarted, PhaseEnded)) or (
            isinstance(notice, TaskEnded) and not self._verbosity
        )
        return [] if table_shows else super().lines(notice)

    def _render(self) -> RenderableType:
        with self.lock:
            assert self._progress is not None
            receipt = self._progress.receipt
            parts: list[RenderableType] = [
                Text(),
                heading(receipt, self._total, time.monotonic() - self._begun),
                Text(),
                phase_table(
                    receipt,
                    ascii_only=plain_marks(self.console),
                    seconds=self._progress.seconds,
                    now=self._now(),
                    mark=self._spinner,
                ),
            ]
        if self._note:
            parts += [Text(), Text(self._note, "yellow")]
        return Group(*parts)

    def _now(self) -> Text:
        assert self._progress is not None
        task = self._progress.task
        if task is None:
            return Text("...", "dim")
        line = Text(task.name, "cyan")
        if task.running and len(task.hosts) > 1:
            waiting = sorted(task.running)
            shown = ", ".join(waiting) if len(waiting) <= 2 else f"{len(waiting)} of {len(task.hosts)} hosts"
            line.append(f"  {shown}", "dim")
        if task.tries:
            line.append(f"  try {task.tries[0]} of {task.tries[1]}", "dim")
        return line
