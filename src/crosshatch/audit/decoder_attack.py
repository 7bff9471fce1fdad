"""The attack on embeddings: a decoder trained on samples whose rows somebody knows, tried on all others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.local.forward import forward
from crosshatch.seeds import generator, torch_seed
from crosshatch.simulator.simulator import Simulator

NAME = "decoder"
KNOWN = 2000  # pairs of embedding and row, or half of the samples where there are fewer than twice as many
_HIDDEN = 128
_STEPS = 600
_STEP_SIZE = 3e-3
_LOOK_EVERY = 20
_RIDGE = 1e-6


def attack_embeddings(run: AuditedRun, trained: Simulator) -> tuple[AttackFindings, ...]:
    """One finding per silo: R^2 of its rows from the embeddings of the trained block."""
    return tuple(_attack(run, trained, j) for j in range(len(run.task.blocks)))


def _attack(run: AuditedRun, trained: Simulator, silo: int) -> AttackFindings:
    name = run.task.names[silo]
    x = trained.data.silos[silo].train
    if not x.numel():
        return AttackFindings(NAME, name, why="it has no features")
    if run.data.label_silo == name:
        return AttackFindings(NAME, name, why="it holds the labels, and sends no embeddings")
    if run.config.algorithm.central or run.config.algorithm.topology.vertical is None:
        return AttackFindings(NAME, name, why=f"with {run.algorithm} no embeddings are sent")
    with torch.no_grad():
        embeddings, _ = forward(trained.task, silo, trained.weights[silo], x, keep=False, threads=1)
    order = torch.from_numpy(generator(run.config.run.seed, "decoder", silo).permutation(len(x)))
    known = min(KNOWN, len(x) // 2)
    if known < 10:
        return AttackFindings(NAME, name, why=f"{len(x)} samples are too few to learn from")
    embeddings, rows = embeddings.double()[order], x.flatten(1).double()[order]
    r2 = decode(embeddings[:known], rows[:known], embeddings[known:], rows[known:], seed=run.config.run.seed)
    width, features = embeddings.shape[1], rows.shape[1]
    warning = ""
    if width >= features:
        warning = (
            f"embeddings of silo '{name}' are as wide as its features ({width} for {features}), set fewer model.outputs"
        )
    numbers = "number" if width == 1 else "numbers"
    remark = (
        f"{known:,} known samples, {len(x) - known:,} others; {features} features, {width} {numbers} per sample sent"
    )
    return AttackFindings(NAME, name, {"R^2": r2}, remark=remark, warning=warning)


def decode(seen: Tensor, rows: Tensor, others: Tensor, truth: Tensor, *, seed: int) -> float:
    """R^2 of a decoder, learned from embeddings (k, e) and rows (k, d), on others; every column counts the same.

    A linear one and a network are learned from four fifths of what is known; the rest says which is better, and when to
    stop. Columns that are the same for all known samples are left out.
    """
    inputs, targets = _Scale.of(seen), _Scale.of(rows)
    x, y = inputs.apply(seen), targets.apply(rows)
    learn = slice(0, max(1, len(x) * 4 // 5))
    check = slice(learn.stop, None)
    beside = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
    grams = beside[learn].T @ beside[learn] + _RIDGE * torch.eye(beside.shape[1], dtype=x.dtype)
    linear = torch.linalg.solve(grams, beside[learn].T @ y[learn])
    new = inputs.apply(others)
    guesses = [(_error(beside[check] @ linear, y[check]), torch.cat([new, torch.ones_like(new[:, :1])], 1) @ linear)]
    guesses.append(_network(x, y, new, learn, check, seed=seed))
    _, best = min(guesses, key=lambda guess: guess[0])
    found = targets.apply(truth)
    return 1 - float((best - found).square().sum() / (found - found.mean(0)).square().sum())


def _network(x: Tensor, y: Tensor, new: Tensor, learn: slice, check: slice, *, seed: int) -> tuple[float, Tensor]:
    """The error on what is kept to check, and the guesses of that moment."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(seed, "decoder"))
        sizes = (x.shape[1], _HIDDEN, _HIDDEN, y.shape[1])
        layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
        network = nn.Sequential(*layers[:-1]).double()
    optimiser = torch.optim.Adam(network.parameters(), lr=_STEP_SIZE)
    best = (float("inf"), torch.zeros(len(new), y.shape[1], dtype=y.dtype))
    for step in range(_STEPS):
        optimiser.zero_grad()
        (network(x[learn]) - y[learn]).square().mean().backward()
        optimiser.step()
        if (step + 1) % _LOOK_EVERY == 0:
            with torch.no_grad():
                error = _error(network(x[check]), y[check])
                if error < best[0]:
                    best = (error, network(new))
    return best


def _error(guess: Tensor, truth: Tensor) -> float:
    return float((guess - truth).square().mean())


@dataclass(frozen=True)
class _Scale:
    """Columns that vary, brought to mean 0 and deviation 1."""

    columns: Tensor
    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> _Scale:
        deviation = rows.std(0, unbiased=False)
        columns = (deviation > 1e-12).nonzero().squeeze(1)
        return cls(columns, rows.mean(0)[columns], deviation[columns])

    def apply(self, rows: Tensor) -> Tensor:
        return (rows[:, self.columns] - self.mean) / self.deviation
