"""Every kind of federation that is launched, as changes of one small config."""

from __future__ import annotations

from pathlib import Path

from crosshatch.runs.config import Config, read_config
from tests.runs.own_parts import SOURCE

BASE = """
data = {name = "breast_cancer"}
federation = {silos = 2, clients = 2}
algorithm = {name = "tdcd", local_steps = 2, batch_size = 32, step_size = 0.1}
evaluate = {every = 5}
run = {rounds = 20, precision = "float64", threads = 1}
"""
WEIGHTED = """
data = {path = "rows.csv", label = "y", sample_weights = "w"}
federation = {silos = 2, clients = 2}
algorithm = {name = "tdcd", local_steps = 2, batch_size = 16, step_size = 0.1}
evaluate = {every = 5}
run = {rounds = 20, precision = "float64", threads = 1}
"""
OWN = """
data = {name = "wine"}
model = {block = "mine.py:Net", loss = "mine.py:Plain"}
algorithm = {name = "mine.py:Mine", batch_size = 50}
codecs = {share = "mine.py:Rounded(digits=12)"}
evaluate = {every = 5, metrics = ["accuracy", "mine.py:hits"]}
run = {rounds = 20, precision = "float64", threads = 1}
"""
_ADAM = ("optimiser.name=adam", "algorithm.step_size=0.01")
_BCD = ("algorithm.name=fedbcd", "federation.clients=1")
_HELD = ("federation.labels=silo2",)
_IN_TURN = ("algorithm.order=sequential",)
_ABCD = ("algorithm.name=abcd", "algorithm.window=3", "algorithm.step_size=0.02")
_HSGD = (
    "algorithm.name=hsgd", "algorithm.global_steps=4", "algorithm.batch_size=", "federation.groups=2",
    "model.fusion=head",
)  # fmt: skip
_GRAPH = ("federation.clients=1", "federation.silos=4", "algorithm.batch_size=", "algorithm.step_size=")
_TRANSFER = (*_BCD, "federation.common=200", "model.fusion=transfer", "model.block=mlp", "model.outputs=8",
             "algorithm.step_size=0.02")  # fmt: skip


def _feedback(*exchanges: str) -> tuple[str, ...]:
    return tuple(f"codecs.{exchange}=ef(topk(0.5))" for exchange in exchanges)


KINDS = {
    "TDCD": (),
    "TDCD, fresh, three silos": ("federation.silos=3", "algorithm.batches=fresh"),
    "TDCD, held, each step": (*_HELD,),
    "TDCD, held, each round": (*_HELD, "algorithm.derivatives=each_round"),
    "TDCD, held, continued": (*_HELD, "algorithm.derivatives=continued"),
    "TDCD in turn": (*_IN_TURN, "federation.silos=3"),
    "TDCD, all samples, a head and small networks": ("algorithm.batch_size=", "model.fusion=head", "model.block=mlp"),
    "FedBCD": _BCD,
    "FedBCD in turn": (*_BCD, *_IN_TURN),
    "FedBCD, held": (*_BCD, *_HELD),
    "FedBCD in turn, held, continued": (*_BCD, *_IN_TURN, *_HELD, "algorithm.derivatives=continued"),
    "ABCD, window 3": _ABCD,
    "ABCD, held": (*_ABCD, *_HELD),
    "ABCD, a head": (*_ABCD, "model.fusion=head"),
    "HSGD, a fraction of 0.5": (*_HSGD, "algorithm.fraction=0.5"),
    "HSGD, all clients": (*_HSGD, "algorithm.fraction=1.0"),
    "four tiers": (
        "algorithm.name=tiered", "algorithm.local_steps=", "algorithm.tiers=H(8) H(4) V(2) H(1)",
        "federation.groups=[2, 2]", "federation.clients=1", "model.fusion=head",
    ),
    "Adam kept": (*_ADAM, "optimiser.state=kept"),
    "Adam averaged": (*_ADAM, "optimiser.state=averaged"),
    "MTCD": (*_GRAPH, "algorithm.name=mtcd", "algorithm.tokens=2", "algorithm.hops_between_averages=4"),
    "MTCD, small networks": (
        *_GRAPH, "algorithm.name=mtcd", "algorithm.tokens=2", "algorithm.hops_between_averages=4", "model.block=mlp",
        "algorithm.step_size=0.0005",
    ),
    "STCD": (*_GRAPH, "algorithm.name=stcd", "algorithm.graph={kind = 'ring'}"),
    "DCPA": (*_GRAPH, "algorithm.name=dcpa", "algorithm.local_steps=", "algorithm.graph={kind = 'ring'}"),
    "transfer": _TRANSFER,
    "transfer, held, a draw for the class mean": (*_TRANSFER, "federation.labels=silo1", "model.mean_samples=230"),
    "class weights": (*_HELD, "model.class_weights=balanced"),
    "sample weights": (),
    "own parts": (),
    "error feedback, shared": (*_feedback("share", "head", "broadcast", "average"), "model.fusion=head"),
    "error feedback, held": (*_HELD, *_feedback("share", "derivatives", "broadcast", "average")),
    "error feedback, groups": (*_HSGD, "algorithm.fraction=0.5", *_feedback("share", "head", "average_groups")),
}  # fmt: skip
LOSSY = frozenset(name for name in KINDS if name.startswith(("error feedback", "own parts")))
_TEXTS = {"sample weights": WEIGHTED, "own parts": OWN}


def config_of(folder: Path, name: str, *changes: str) -> Config:
    """The config of a kind, from a file in this folder; a change that gives no value takes the setting out."""
    text, every = _TEXTS.get(name, BASE), (*KINDS[name], *changes)
    kept = [one for one in every if not one.endswith("=")]
    given = {one.partition("=")[0] for one in kept}
    for one in every:
        if one.endswith("=") and one[:-1] not in given:
            text = _without(text, one[:-1].partition(".")[2])
    path = folder / "launched.toml"
    path.write_text(text)
    if text is OWN:
        (folder / "mine.py").write_text(SOURCE)
    if text is WEIGHTED:
        rows = [
            f"{n % 7 / 3},{n % 5 - 2},{n % 11 / 4},{n % 4},{int(n % 7 + n % 4 > 4)},{n % 3 + 0.5}" for n in range(80)
        ]
        (folder / "rows.csv").write_text("\n".join(["a,b,c,d,y,w", *rows]))
    return read_config(path, kept)


def _without(text: str, key: str) -> str:
    """A config without one of its algorithm's settings."""
    lines = text.splitlines()
    for n, line in enumerate(lines):
        if line.startswith("algorithm"):
            inside = line[line.index("{") + 1 : line.rindex("}")].split(", ")
            lines[n] = f"algorithm = {{{', '.join(one for one in inside if not one.startswith(f'{key} ='))}}}"
    return "\n".join(lines)
