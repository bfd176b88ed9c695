"""Places verified files on hosts: fetched once per architecture by the controller, pushed only where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import artifacts
from .preflight import artifact_store


class ActionModule(ActionBase):
    """`spark.plane.artifact`: see the module's documentation."""

    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args, check = self._task.args, self._task.check_mode
        store = artifact_store({f"artifact_{key}": args.get(key) for key in ("cache", "mirror", "lock")})
        wanted: list[dict[str, Any]] = []
        chosen: dict[str, tuple[artifacts.Artifact, str]] = {}
        try:
            for item in args["place"]:
                one = artifacts.select(args["pins"], str(item["name"]), str(args["architecture"]))
                digest = store.expected(one, learn=not check)
                chosen[item["dest"]] = (one, digest)
                wanted.append(
                    {
                        "dest": item["dest"],
                        "sha256": digest,
                        "mode": str(item.get("mode") or "0644"),
                        "owner": item.get("owner") or "root",
                        "group": item.get("group") or "root",
                    }
                )
        except artifacts.ArtifactError as error:
            raise AnsibleActionFail(str(error)) from error
        seen = self._execute_module("spark.plane.artifact", {"files": wanted}, task_vars=task_vars)
        if seen.get("failed") or check or not seen.get("missing"):
            return {**result, **seen}
        fetched: list[str] = []
        for file in wanted:
            if file["dest"] not in seen["missing"]:
                continue
            one, digest = chosen[file["dest"]]
            try:
                local, brought = store.fetch(one, digest)
            except artifacts.ArtifactError as error:
                raise AnsibleActionFail(str(error)) from error
            fetched += [one.key] if brought else []
            file["staged"] = self._push(local)
        placed = self._execute_module("spark.plane.artifact", {"files": wanted}, task_vars=task_vars)
        self._remove_tmp_path(self._connection._shell.tmpdir)
        return {**result, **placed, "fetched": fetched}

    def _push(self, local: Path) -> str:
        if not self._connection._shell.tmpdir:
            self._make_tmp_path()
        remote = self._connection._shell.join_path(self._connection._shell.tmpdir, f"{local.parent.name[:16]}-{local.name}")
        self._transfer_file(str(local), remote)
        self._fixup_perms2((self._connection._shell.tmpdir, remote))
        return str(remote)
