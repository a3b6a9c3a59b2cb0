"""A candidate in the published form: a class with the settings it needs, and inputs by name."""

import torch


class Model:
    def __init__(self, eps=1e-6):
        self.eps = eps

    def forward(self, x, weight):
        return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight.float(), self.eps).to(x.dtype)
