"""The manifest for KubeRay holds together: fields of a RayJob, one place that all nodes see, room for the tasks.

Checked are the names of the fields of a `RayJob` (ray.io/v1) that it uses, not their whole schema: no package has that.
"""

import shlex
from pathlib import Path
from typing import Any

import pytest

from inferometer.commands.mine import run
from inferometer.fleet.on_ray.cluster import room
from inferometer.units import parse_bytes

MANIFEST = Path(__file__).parents[3] / "deploy" / "kuberay.yaml"


@pytest.fixture
def job() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML isn't installed")
    found: dict[str, Any] = yaml.safe_load(MANIFEST.read_text("utf-8"))
    return found


def groups(job: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def test_it_is_a_ray_job_with_fields_that_such_have(job: dict[str, Any]) -> None:
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    known = {"entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "rayClusterSpec"}
    assert set(job["spec"]) == known
    assert set(job["spec"]["rayClusterSpec"]) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    head, *workers = groups(job)
    assert set(head) == {"rayStartParams", "template"}
    for each in workers:
        assert set(each) == {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
        assert each["minReplicas"] <= each["replicas"] <= each["maxReplicas"]
    for each in groups(job):
        assert all(isinstance(value, str) for value in each["rayStartParams"].values())


def test_its_command_is_one_and_its_paths_are_in_what_all_nodes_mount(job: dict[str, Any]) -> None:
    name, command, *words = shlex.split(job["spec"]["entrypoint"])
    given = run.make_context("mine", words).params
    assert (name, command, given["ray"]) == ("inferometer", "mine", "auto")
    for group in groups(job):
        spec = group["template"]["spec"]
        (container,) = spec["containers"]
        (mount,) = container["volumeMounts"]
        assert [volume["name"] for volume in spec["volumes"]] == [mount["name"]]
        assert not mount.get("readOnly", False)
        for path in (*given["paths"], given["output"]):
            assert path.startswith(mount["mountPath"] + "/")
    assert len({str(group["template"]["spec"]["volumes"]) for group in groups(job)}) == 1
    assert len({group["template"]["spec"]["containers"][0]["image"] for group in groups(job)}) == 1


def test_a_worker_has_room_for_a_task_on_each_processor(job: dict[str, Any]) -> None:
    words = shlex.split(job["spec"]["entrypoint"])[2:]
    memory = run.make_context("mine", words).params["memory"]
    for group in groups(job)[1:]:
        limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
        for_tasks = parse_bytes(limits["memory"] + "B") * 0.6  # the rest is Ray's object store, and a reserve
        node = {"Alive": True, "Resources": {"CPU": float(limits["cpu"]), "memory": for_tasks}}
        assert room([node], memory) == int(limits["cpu"])


def test_its_ray_is_the_one_that_is_tested(job: dict[str, Any]) -> None:
    constraints = (MANIFEST.parents[1] / "constraints.txt").read_text("utf-8").splitlines()
    assert f"ray=={job['spec']['rayClusterSpec']['rayVersion']}" in constraints
