"""The no-op benchmark counts what ran where."""

from __future__ import annotations

from bench.noop import Cost, changes, count_calls, count_ssh


def _module(host: str, action: str, on_host: bool = True) -> dict[str, object]:
    return {"kind": "module", "host": host, "module": action, "action": action, "on_host": on_host}


def _task(host: str, action: str, uuid: str, changed: bool = False) -> dict[str, object]:
    return {"kind": "task", "outcome": "ok", "host": host, "uuid": uuid, "name": uuid, "action": action, "changed": changed}


COST = Cost(
    wall=1,
    controller=2,
    hosts=3,
    records=[
        _task("a", "ansible.builtin.assert", "1"),
        _task("b", "ansible.builtin.assert", "1"),
        _module("a", "spark.plane.files"),
        _task("a", "spark.plane.files", "2", changed=True),
        _module("a", "ansible.builtin.stat"),
        _module("a", "ansible.builtin.stat"),
        _task("a", "ansible.builtin.stat", "3"),
        _module("b", "ansible.builtin.get_url", on_host=False),
        _task("b", "ansible.builtin.get_url", "4"),
    ],
    output="<a> SSH: EXEC ssh -C\n<a> ESTABLISH\n<a> SSH: EXEC ssh\n<b> SSH: EXEC ssh\n",
)


def test_calls_are_counted_where_they_ran() -> None:
    by_host, by_action, controller = count_calls(COST)
    assert by_host == {"a": 3}
    assert by_action == {"spark.plane.files": 1, "ansible.builtin.stat": 2}
    assert controller == 2
    assert changes(COST) == 1
    assert COST.cpu == 5


def test_ssh_is_counted_on_the_busiest_host() -> None:
    assert count_ssh(COST, ["a", "b"]) == 2
