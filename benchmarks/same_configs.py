"""Thirty small configs that between them run most lines of the simulator, for `benchmarks.same_results`.

Each entry changes `BASE`: a section's keys replace those of the base, [algorithm] and [network] are replaced whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Tables = Mapping[str, Mapping[str, Any]]

BASE: Tables = {
    "data": {"name": "breast_cancer"},
    "federation": {"silos": 2, "clients": 3},
    "model": {"block": "linear"},
    "algorithm": {"name": "tdcd", "local_steps": 4, "step_size": 0.1, "batch_size": 64},
    "codecs": {},
    "network": {"kind": "constant", "t_comm": 10.0, "t_comp": 1.0},
    "evaluate": {"every": 15},
    "run": {"rounds": 30, "seed": 7, "threads": 1},
}
WHOLE = ("algorithm", "network")

DIGITS = {"name": "digits", "limit": 400}
IMAGES = {"silos": 2, "split": "halves", "clients": 4}
MLP = {"block": "mlp", "hidden": [12], "activation": "tanh"}
HEAD = {"fusion": "head", "outputs": 4}
MLP_HEAD = MLP | HEAD | {"outputs": 8}
SMALL_CNN = {"block": "cnn", "channels": 4, "dense": 8}
CLINIC = [{"name": "clinic", "groups": ["mean"], "clients": 1}, {"name": "device", "groups": ["error", "worst"]}]
THREE = [{"name": name, "groups": [name]} for name in ("mean", "error", "worst")]
WARDS = {"silos": CLINIC, "clients": 12, "groups": 3}

ONE_CLIENT = {"clients": 1}
CLIENT_LINES = {
    "client-hub": {"latency": 0.05, "up": 1.0, "down": 4.0},
    "branch-hub": {"latency": 0.01, "up": 5.0, "down": 20.0},
    "hub-hub": {"latency": 0.02, "up": 100.0, "down": 80.0},
    "group-server": {"latency": 0.03, "up": 50.0, "down": 60.0},
}
AGENT_LINES = {
    "agent-agent": {"latency": 0.02, "up": 2.0, "down": 2.0},
    "agent-server": {"latency": 0.1, "up": 8.0, "down": 16.0},
}
BANDWIDTH = {"kind": "bandwidth", "step_seconds": 0.01, "links": CLIENT_LINES}
UNEVEN = BANDWIDTH | {
    "slow": {"error": 2.0, "worst/3": 5.0},
    "parties": {"mean/1": {"latency": 0.5, "up": 0.1, "down": 0.2}, "worst": {"latency": 0.2, "up": 3.0, "down": 3.0}},
}
SQRT = {"kind": "inverse_sqrt", "value": 0.3}
HALVING = {"kind": "halving", "value": 0.2, "every": 3}

CONFIGS: Mapping[str, Tables] = {
    "central": {
        "model": {"l1": 0.001, "l2": 0.01},
        "algorithm": {"name": "central", "local_steps": 3, "step_size": HALVING, "batch_size": 64, "batches": "fresh"},
    },
    "fedavg_samples": {
        "data": DIGITS,
        "federation": {"silos": 1, "clients": 5, "samples": {"kind": "dirichlet", "alpha": 0.5}},
        "model": MLP,
        "algorithm": {"name": "fedavg", "local_steps": 4, "batch_size": 100},
        "codecs": {"average": "topk(0.1) | quantise(64)", "broadcast": "half"},
        "run": {"strategy": "stacked"},
    },
    "fedavg_equal": {
        "federation": {"silos": 1, "clients": 6, "samples": {"kind": "main_labels", "main": 1}},
        "model": {"l2": 0.002},
        "algorithm": {"name": "fedavg", "local_steps": 5, "batches": "reused", "weights": "equal", "step_size": SQRT},
        "codecs": {"average": "ef(randomk(0.3), accumulate)"},
        "run": {"precision": "float64", "strategy": "gram"},
    },
    "fedsgd": {
        "data": {"name": "wine"},
        "federation": {"silos": 3} | ONE_CLIENT,
        "model": {"l1": 0.001, "l2": 0.01},
        "algorithm": {"name": "fedsgd", "step_size": "auto", "batch_size": 32},
        "codecs": {"share": "half"},
    },
    "fedbcd_parallel": {
        "data": DIGITS,
        "federation": IMAGES | ONE_CLIENT,
        "model": MLP,
        "algorithm": {"name": "fedbcd", "local_steps": 4, "batch_size": 64},
        "codecs": {"share": "quantise(32)"},
        "network": BANDWIDTH,
    },
    "fedbcd_sequential": {
        "federation": {"silos": THREE} | ONE_CLIENT,
        "model": {"block": f"{Path(__file__).with_name('own_block.py')}:Dropping", "l2": 0.01},
        "algorithm": {"name": "fedbcd", "local_steps": 3, "order": "sequential", "batch_size": 50},
    },
    "fedbcd_proximal": {
        "federation": {"silos": THREE, "labels": "worst"} | ONE_CLIENT,
        "model": {"l1": 0.001},
        "algorithm": {"name": "fedbcd", "local_steps": 5, "proximal": 0.5, "batch_size": 50},
        "codecs": {"derivatives": "ef(quantise(16))", "share": "topk(0.5)"},
    },
    "tdcd_one_step": {
        "federation": {"clients": 10},
        "model": MLP_HEAD | {"l2": 0.001},
        "algorithm": {"name": "tdcd", "local_steps": 1, "batch_size": 64, "step_size": HALVING},
    },
    "tdcd_reused": {
        "data": {"name": "diabetes"},
        "federation": {"clients": 10},
        "model": {"l2": 0.1},
        "algorithm": {"name": "tdcd", "local_steps": 5, "batch_size": 64, "step_size": SQRT},
        "run": {"strategy": "gram"},
    },
    "tdcd_fresh": {
        "data": {"name": "wine"},
        "federation": {"clients": 20, "aligned": True},
        "model": MLP | {"l2": 0.01},
        "algorithm": {"name": "tdcd", "local_steps": 3, "batch_size": 20, "batches": "fresh"},
        "run": {"strategy": "stacked"},
    },
    "abcd": {
        "federation": {"silos": THREE, "clients": 4, "labels": "mean"},
        "model": MLP,
        "algorithm": {"name": "abcd", "local_steps": 4, "batch_size": 60, "window": 3},
    },
    "tdcd_held_each_step": {
        "federation": {"silos": THREE, "clients": 4, "labels": "mean"},
        "model": HEAD | {"head_holder": "mean"},
        "algorithm": {"name": "tdcd", "local_steps": 3, "batch_size": 64, "derivatives": "each_step"},
        "codecs": {"share": "ef(topk(0.4))", "derivatives": "half"},
        "network": UNEVEN,
    },
    "tdcd_held_each_round": {
        "federation": {"silos": CLINIC, "clients": 5, "labels": "clinic"},
        "model": {"l2": 0.01},
        "algorithm": {"name": "tdcd", "local_steps": 4, "batch_size": 64, "derivatives": "each_round"},
        "codecs": {"derivatives": "ef(topk(0.3))", "average": "ef(topk(0.3), accumulate)"},
    },
    "tdcd_idle_clients": {
        "federation": {"silos": THREE, "clients": 25},
        "algorithm": {"name": "tdcd", "local_steps": 4, "batch_size": 12},
        "codecs": {"broadcast": "ef(quantise(64))", "share": "randomk(0.5, unbiased)"},
        "network": UNEVEN,
    },
    "tdcd_feedback_head": {
        "data": DIGITS,
        "federation": IMAGES,
        "model": MLP_HEAD | {"head": "mlp", "head_hidden": [8]},
        "algorithm": {"name": "tdcd", "local_steps": 3, "batch_size": 64},
        "codecs": {
            "share": "ef(topk(0.2) | quantise(128))",
            "head": "ef(topk(0.3))",
            "broadcast": "ef(topk(0.3))",
            "average": "topk(0.2) | half",
        },
    },
    "tdcd_cnn_loop": {
        "data": DIGITS,
        "federation": IMAGES,
        "model": SMALL_CNN | HEAD,
        "algorithm": {"name": "tdcd", "local_steps": 2, "batch_size": 40},
        "run": {"strategy": "loop"},
    },
    "tdcd_cnn_many": {
        "data": DIGITS,
        "federation": IMAGES | {"clients": "each"},
        "model": SMALL_CNN,
        "algorithm": {"name": "tdcd", "local_steps": 3, "batch_size": 24},
    },
    "tdcd_lstm": {
        "federation": {"silos": 2, "clients": 4},
        "model": {"block": "lstm", "hidden": [5], "steps": 5, "blocks": {"silo1": {"block": "mlp", "hidden": [6]}}},
        "algorithm": {"name": "tdcd", "local_steps": 3, "batch_size": 40},
    },
    "c_tdcd": {
        "data": DIGITS,
        "federation": IMAGES | {"split": "patches", "silos": 4, "clients": 3},
        "model": HEAD,
        "algorithm": {"name": "c-tdcd", "local_steps": 4, "batch_size": 80},
    },
    "hsgd_groups": {
        "federation": WARDS,
        "model": HEAD | {"head_holder": "clinic", "l2": 0.001},
        "algorithm": {"name": "hsgd", "global_steps": 4, "local_steps": 4, "fraction": 0.5, "step_size": 0.05},
    },
    "hsgd_one_step": {
        "data": DIGITS,
        "federation": IMAGES | {"groups": 3, "clients": 8},
        "model": SMALL_CNN | HEAD,
        "algorithm": {"name": "hsgd", "global_steps": 1, "local_steps": 1, "fraction": 0.5, "step_size": 0.1},
    },
    "hsgd_rare_averages": {
        "federation": WARDS | {"labels": "clinic"},
        "model": MLP_HEAD | {"head_holder": "clinic"},
        "algorithm": {"name": "hsgd", "global_steps": 6, "local_steps": 2, "fraction": 0.3, "step_size": SQRT},
        "codecs": {"average_groups": "half", "derivatives": "topk(0.5)"},
        "network": BANDWIDTH | {"slow": {"device/2": 3.0}},
    },
    "c_hsgd": {
        "data": DIGITS,
        "federation": IMAGES | {"groups": 3, "group_samples": {"kind": "main_labels"}, "clients": 8},
        "model": MLP_HEAD,
        "algorithm": {"name": "c-hsgd", "global_steps": 2, "local_steps": 2, "fraction": 0.5, "step_size": 0.1},
        "codecs": {"average_groups": "ef(quantise(64))"},
    },
    "jfl": {
        "federation": WARDS | {"groups": 2},
        "model": HEAD,
        "algorithm": {"name": "jfl", "local_steps": 2, "fraction": 0.5, "step_size": 0.05},
        "network": BANDWIDTH,
    },
    "tiered_four": {
        "data": DIGITS,
        "federation": IMAGES | {"groups": [2, 2], "clients": 3},
        "model": MLP,
        "algorithm": {"name": "tiered", "tiers": "H(8) H(4) V(4) H(2)", "batch_size": 40, "weights": "samples"},
        "codecs": {"average_groups": "ef(topk(0.5))", "broadcast": "half"},
        "network": BANDWIDTH,
    },
    "tiered_branches": {
        "federation": {"silos": THREE, "clients": 12, "branches": [2, 3], "groups": 2},
        "model": {"l2": 0.01},
        "algorithm": {"name": "tiered", "tiers": "H(8) V(8) H(8) H(4) H(2)", "fraction": 0.5, "weights": "at_work"},
        "codecs": {"average": "topk(0.5)", "broadcast": "quantise(256)"},
        "network": UNEVEN,
    },
    "stcd": {
        "data": {"name": "diabetes"},
        "federation": {"silos": 5} | ONE_CLIENT,
        "model": {"l2": 10.0, "bias": False},
        "algorithm": {"name": "stcd", "local_steps": 5, "graph": {"kind": "ring"}},
        "evaluate": {"metrics": ["rmse", "suboptimality"]},
        "run": {"precision": "float64"},
    },
    "mtcd_server": {
        "data": {"name": "diabetes"},
        "federation": {"silos": 5} | ONE_CLIENT,
        "model": {"l1": 20.0, "bias": False},
        "algorithm": {"name": "mtcd", "tokens": 3, "local_steps": 5, "hops_between_averages": 3, "start": "each"},
        "network": {"kind": "bandwidth", "step_seconds": 0.01, "links": AGENT_LINES, "slow": {"silo2": 4.0}},
    },
    "mtcd_meeting": {
        "federation": {"silos": 6} | ONE_CLIENT,
        "model": {"l1": 0.5, "l2": 0.5, "bias": False},
        "algorithm": {"name": "mtcd", "tokens": 2, "local_steps": 4, "hops_between_averages": 0, "stay": True}
        | {"meeting": "average", "graph": {"kind": "erdos_renyi", "p": 0.6, "seed": 3}},
    },
    "mtcd_blocks": {
        "data": {"name": "wine"},
        "federation": {"silos": 4} | ONE_CLIENT,
        "model": MLP | {"zero_init": True, "l2": 0.1, "blocks": {"silo1": {"block": "linear"}}},
        "algorithm": {"name": "mtcd", "tokens": 2, "local_steps": 3, "step_size": 0.002, "hops_between_averages": 4},
    },
    "dcpa": {
        "federation": {"silos": 4} | ONE_CLIENT,
        "model": {"l2": 1.0, "bias": False},
        "algorithm": {"name": "dcpa", "graph": {"kind": "path"}},
        "network": {"kind": "bandwidth", "step_seconds": 0.01, "links": AGENT_LINES},
        "run": {"precision": "float64"},
    },
}


def tables(name: str) -> dict[str, dict[str, Any]]:
    """The config of an entry, as its TOML file has it.

    >>> tables("central")["run"]["rounds"], tables("central")["algorithm"]["local_steps"]
    (30, 3)
    """
    changes = CONFIGS[name]
    return {
        section: dict(changes.get(section, standard) if section in WHOLE else {**standard, **changes.get(section, {})})
        for section, standard in BASE.items()
    }
