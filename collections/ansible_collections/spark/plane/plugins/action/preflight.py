"""Refuses bad input before anything changes anywhere. Runs on the controller alone, once for all hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.urls import open_url
from ansible.plugins.action import ActionBase

from ..plugin_utils import artifacts, phases, rules
from ..plugin_utils.variables import RoleFiles, host_variables, origin, templated

_QUOTED = re.compile(r"'([A-Za-z_][A-Za-z0-9_]*)'")
_HOST_NAMES = ("host_name", "host_management_interface", "host_management_address")
_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "bool": "true or false (with -e as JSON)",
    "list": "a list",
    "dict": "a mapping",
}


class ActionModule(ActionBase):
    """`spark.plane.preflight`: see the module's documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._vars = task_vars or {}
        site = Path(str(self._task.args["site"])).resolve()
        self._files = RoleFiles(site.parent / "roles", self._loader)
        stage = self._task.args["stage"]
        selected: list[phases.Phase] = []
        problems: list[str] = []
        try:
            listed = phases.read(site)
        except (OSError, ValueError) as error:
            problems.append(str(error))
        else:
            run, skip = self._tags("ansible_run_tags"), self._tags("ansible_skip_tags")
            selected = [phase for phase in listed if phase.selected(run, skip)]
            problems += self._unknown_tags(listed, run | skip)
        if not problems:
            problems = self._inputs(selected) if stage == "inputs" else self._hosts() or self._artifacts(selected)
        roles = list(dict.fromkeys(use.role for phase in selected for use in phase.uses))
        return {
            **result,
            "changed": False,
            "phases": [phase.name for phase in selected],
            "roles": roles,
            "readers": [role for role in roles if (self._files.roles / role / "tasks" / "preflight.yml").is_file()],
            **({"failed": True, "bad_input": True, "msg": "\n".join(problems)} if problems else {}),
        }

    def _tags(self, name: str) -> frozenset[str]:
        return frozenset(str(tag) for tag in self._vars.get(name) or [])

    @staticmethod
    def _unknown_tags(listed: list[phases.Phase], asked: frozenset[str]) -> list[str]:
        known = [phase.name for phase in listed]
        return [
            f"unknown phase {tag!r}{rules.suggestion(tag, known)}; known: {', '.join(known)}"
            for tag in phases.unknown_tags(listed, asked)
        ]

    # --- before any host is asked

    def _inputs(self, selected: list[phases.Phase]) -> list[str]:
        problems = rules.groups(self._vars["groups"])
        if problems:
            return problems
        names = self._of_all_hosts("host", ("host_name",))
        problems += rules.names({host: values.get("host_name") for host, values in names.items()})
        # What the inventory itself says of addresses; those read from the hosts are judged with the facts.
        raw = {host: self._raw(host) for host in self._vars["groups"]["all"]}
        key = "host_management_address"
        said = {host: self._templar.template(values[key]) for host, values in raw.items() if key in values}
        problems += rules.addresses(said, required=False)
        problems += rules.doors({host: self._door(values) for host, values in raw.items()})
        return problems + rules.together(self._specs(selected))

    def _raw(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = self._vars["hostvars"].raw_get(host)
        return found

    def _door(self, raw: dict[str, Any]) -> tuple[str, int] | None:
        """Where ssh knocks, when the inventory says so and no jump changes what the name means."""
        arguments = " ".join(str(raw.get(f"ansible_ssh_{kind}_args", "")) for kind in ("common", "extra"))
        if "ansible_host" not in raw or "Proxy" in arguments or raw.get("ansible_connection", "ssh") != "ssh":
            return None
        try:
            return str(self._templar.template(raw["ansible_host"])), int(self._templar.template(raw.get("ansible_port", 22)))
        except (ValueError, TypeError):
            return None

    def _of_all_hosts(self, role: str, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for host in self._vars["groups"]["all"]:
            own = host_variables(role, host, self._files, self._vars["hostvars"])
            found[host] = {name: value for name, value, error in templated(self._templar, own, list(names)) if not error}
        return found

    def _play_hosts(self, pattern: str) -> list[str]:
        """Hosts of this run that a play's `hosts:` names."""
        in_run = set(self._vars.get("ansible_play_hosts_all") or self._vars["groups"]["all"])
        inventory = getattr(self._vars["hostvars"], "_inventory", None)
        if inventory is None or "{{" in pattern:
            return sorted(in_run)
        return [host.name for host in inventory.get_hosts(pattern) if host.name in in_run]

    def _specs(self, selected: list[phases.Phase]) -> Iterator[tuple[str, str]]:
        """Every variable of every selected role on every host against its argument spec."""
        all_roles = self._files.names()
        unknown_seen: set[tuple[str, str]] = set()
        done: set[tuple[str, str]] = set()
        for phase in selected:
            for use in phase.uses:
                for role in self._files.dependencies(use.role):
                    for host in self._play_hosts(use.hosts):
                        if (role, host) not in done:
                            done.add((role, host))
                            yield from ((host, text) for text in self._spec(role, host))
        for host in self._vars.get("ansible_play_hosts_all") or self._vars["groups"]["all"]:
            for name, value in self._raw(host).items():
                owner = max((r for r in all_roles if name.startswith(f"{r}_")), key=len, default=None)
                if owner and name not in self._files.options(owner) and (host, name) not in unknown_seen:
                    unknown_seen.add((host, name))
                    hint = rules.suggestion(name, self._files.options(owner))
                    yield host, f"{name} is not a variable of role {owner}{hint}{_at(origin(value) or origin(name))}"

    def _spec(self, role: str, host: str) -> Iterator[str]:
        options = self._files.options(role)
        variables = host_variables(role, host, self._files, self._vars["hostvars"])
        values: dict[str, Any] = {}
        for name, value, error in templated(self._templar, variables, list(options)):
            if error:
                yield f"{name} cannot be worked out: {error}{_at(origin(variables[name]))}"
            else:
                values[name] = value
        # The validator takes a string for a list of one, but the role gets the string as it was written.
        for name, kind in (("list", list), ("dict", dict), ("bool", bool)):
            for option in [key for key, value in values.items() if options[key].get("type") == name]:
                if not isinstance(values[option], kind):
                    value = values.pop(option)
                    seen = "a secret value" if options[option].get("no_log") else f"{value!r} ({_type(value)})"
                    yield f"{option} is {seen}, wanted {_WORDS[name]}{_at(origin(variables[option]))}"
        verdict = ArgumentSpecValidator(options).validate(values, validate_role_argument_spec=True)
        for message in verdict.error_messages:
            name = next((n for n in _QUOTED.findall(message) if n in options), "")
            if not name or name not in values:
                yield f"role {role}: {message}"
                continue
            spec, value = options[name], values[name]
            seen = "a secret value" if spec.get("no_log") else f"{value!r} ({_type(value)})"
            if isinstance(value, (dict, list)) or "choices" in spec or "choices" in message:
                wanted = message
            else:
                wanted = f"wanted {_WORDS.get(str(spec.get('type')), spec.get('type'))}"
            yield f"{name} is {seen}, {wanted}{_at(origin(variables[name]))}"

    # --- with the facts of every host

    def _hosts(self) -> list[str]:
        values = self._of_all_hosts("host", _HOST_NAMES)
        facts = {host: self._raw(host).get("ansible_facts") or {} for host in values}
        known = {host: fact for host, fact in facts.items() if fact.get("interfaces")}
        wanted = {host: str(values[host].get("host_management_interface") or "") for host in known}
        problems = rules.interfaces(wanted, {host: list(fact["interfaces"]) for host, fact in known.items()})
        if problems:
            return problems
        problems += rules.addresses({h: v.get("host_management_address") for h, v in values.items()}, required=True)
        for host, fact in known.items():
            card = fact.get(wanted[host].replace("-", "_")) or {}
            own = [card.get("ipv4") or {}, *(card.get("ipv4_secondaries") or [])]
            held = [entry["address"] for entry in own if entry.get("address")]
            said = values[host].get("host_management_address")
            if said and said not in held:
                problems.append(
                    f"{host}: host_management_address is {said}, {wanted[host]} has {', '.join(held) or 'no IPv4 address'}"
                )
        identities = {
            host: f"machine-id {fact['machine_id']}, {card['macaddress']} on {wanted[host]}"
            for host, fact in known.items()
            if fact.get("machine_id") and (card := fact.get(wanted[host].replace("-", "_")) or {}).get("macaddress")
        }
        return problems + rules.machines(identities)

    def _artifacts(self, selected: list[phases.Phase]) -> list[str]:
        """Bring and verify, on the controller, every artifact of the selected roles for the hosts' architectures."""
        problems: list[str] = []
        roles = {use.role for phase in selected for use in phase.uses}
        done: set[str] = set()
        for host in self._vars.get("ansible_play_hosts_all") or []:
            own = host_variables("artifact", host, self._files, self._vars["hostvars"])
            got = {n: v for n, v, e in templated(self._templar, own, ["pins_artifacts", *_ARTIFACT_NAMES]) if not e}
            store = artifact_store(got)
            arch = str((own.get("ansible_facts") or {}).get("architecture", ""))
            for name in artifacts.needed(got.get("pins_artifacts") or {}, roles):
                try:
                    one = artifacts.select(got["pins_artifacts"], name, arch)
                    if one.key not in done:
                        done.add(one.key)
                        digest = store.expected(one, learn=not self._task.check_mode)
                        if not self._task.check_mode or store.mirror is not None:
                            store.fetch(one, digest)
                except artifacts.ArtifactError as error:
                    problems.append(str(error))
        return list(dict.fromkeys(problems))


_ARTIFACT_NAMES = ("artifact_cache", "artifact_mirror", "artifact_lock")


def artifact_store(values: dict[str, Any]) -> artifacts.Store:
    """The controller's artifact store as the variables of role `artifact` describe it."""
    mirror = str(values.get("artifact_mirror") or "")
    return artifacts.Store(
        cache=Path(str(values["artifact_cache"])).expanduser(),
        lock=artifacts.Lock(Path(str(values["artifact_lock"])).expanduser()),
        opener=lambda url: open_url(url, timeout=60, http_agent="spark-plane"),
        mirror=Path(mirror).expanduser() if mirror else None,
    )


def _type(value: Any) -> str:
    for kind in (bool, int, float, str, list, dict):
        if isinstance(value, kind):
            return kind.__name__
    return type(value).__name__


def _at(where: str) -> str:
    # The runner hands over variables in a file that is gone by the time anybody reads this.
    return " (given with -e)" if "/spark-plane-run-" in where else f" ({where})" if where else ""
