"""The gates of the gated delta rule, and which states of the pool it touches."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed")

from inferometer.operators.catalogue.delta_rule import log_decay  # noqa: E402
from inferometer.operators.catalogue.gated_delta_rule_update import OPERATOR  # noqa: E402


def test_a_gate_is_linear_above_the_threshold_and_softplus_below() -> None:
    a = torch.tensor([[[-1.0], [0.25], [2.5]]])
    found = log_decay(torch.tensor([math.log(3)]), a, torch.tensor([0.5]), beta=2.0, threshold=1.6)
    soft = [math.log1p(math.exp(2 * x)) / 2 for x in (-0.5, 0.75)]
    assert found.flatten().tolist() == pytest.approx([-3 * x for x in (*soft, 3.0)])


def test_states_that_no_sequence_has_stay_to_the_bit() -> None:
    args = OPERATOR.tiny[0]
    tensors = OPERATOR.inputs(**args, seed=1)
    found = OPERATOR.answer(tensors, args)["final_state"]
    used = tensors["initial_state_indices"].tolist()
    assert len(used) < len(found)
    for row in range(len(found)):
        assert torch.equal(found[row], tensors["initial_state"][row]) == (row not in used)
