"""The manifest for KubeRay holds together: fields of a RayJob, one place that all nodes see, room for the tasks.

Its fields are held against KubeRay's API reference, and its pods against the schemas of Kubernetes, where they are
installed.
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


def of_fields(types: dict[str, Any], *needed: str) -> dict[str, Any]:
    return {"type": "object", "properties": types, "additionalProperties": False, "required": [*needed]}


TEXT, WHOLE, FLAG, OBJECT = ({"type": name} for name in ("string", "integer", "boolean", "object"))
TEXTS = {"type": "object", "additionalProperties": TEXT}
GROUP = {"rayStartParams": TEXTS, "template": OBJECT}
WORKERS = GROUP | {"groupName": TEXT, "replicas": WHOLE, "minReplicas": WHOLE, "maxReplicas": WHOLE}
CLUSTER = {
    "rayVersion": TEXT,
    "headGroupSpec": of_fields(GROUP, "template"),
    "workerGroupSpecs": {"type": "array", "items": of_fields(WORKERS, "template")},
}
JOB = {
    "entrypoint": TEXT,
    "shutdownAfterJobFinishes": FLAG,
    "ttlSecondsAfterFinished": WHOLE,
    "rayClusterSpec": of_fields(CLUSTER, "headGroupSpec"),
}
SCHEMA = of_fields(
    {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayJob"},
        "metadata": of_fields({"name": TEXT}, "name"),
        "spec": of_fields(JOB, "rayClusterSpec"),
    },
    *("apiVersion", "kind", "metadata", "spec"),
)
"""Fields of a `RayJob` and their types by KubeRay's API reference for ray.io/v1, those that the manifest uses."""


def test_it_is_a_ray_job_by_the_schema_of_such(job: dict[str, Any]) -> None:
    check = pytest.importorskip("jsonschema", reason="jsonschema isn't installed")
    check.validate(job, SCHEMA)
    assert job["spec"]["shutdownAfterJobFinishes"] or "ttlSecondsAfterFinished" not in job["spec"]
    for each in groups(job)[1:]:
        assert each["minReplicas"] <= each["replicas"] <= each["maxReplicas"]
    job["spec"]["ttlSecondsAfterFinished"] = "600"
    with pytest.raises(check.ValidationError, match="is not of type 'integer'"):
        check.validate(job, SCHEMA)


def test_its_pods_are_pods_by_the_schema_of_kubernetes(job: dict[str, Any]) -> None:
    check = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate (119 MB) isn't installed")
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, **each["template"]} for each in groups(job)]
    for pod in pods:
        check.validate(pod, "1.30", strict=True)
    pods[0]["spec"]["containers"][0]["volumeMounts"][0]["mount"] = "/profiles"
    with pytest.raises(check.ValidationError):
        check.validate(pods[0], "1.30", strict=True)


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
