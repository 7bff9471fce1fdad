"""A transfer task under encryption: components travel once per round, masked gradients with every local step.

Both silos are one party each with a key of its own. What one side hides is in `privacy/transfer_gradients.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.local.forward import KeptPass
from crosshatch.local.given_gradient import descend_along
from crosshatch.local.layers import Chain, ChainPass
from crosshatch.local.problem import LossInputs, Problem
from crosshatch.local.solve import Strategy
from crosshatch.network import Direction
from crosshatch.privacy.exchanges.check_encryption import label_sums
from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.privacy.exchanges.encrypted_exchange import CountRead, Sums, nobody_counts, require_one_batch
from crosshatch.privacy.exchanges.own_numbers import Side, clear_gradient, pull
from crosshatch.privacy.exchanges.transfer_ciphertexts import Answer, EncryptedTerms, TransferCiphertexts
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.transfer_gradients import (
    Plain,
    decode,
    gradient_with_labels,
    gradient_without_labels,
    sum_of_signs,
    transfer_slots,
)
from crosshatch.protocol.message_contents import Specs
from crosshatch.simulator.accounting.legs import HubLeg
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.sharing import Asked, Frozen, NextCall
from crosshatch.task.task import Task
from crosshatch.task.tie import Tie


@dataclass
class EncryptedTransfer:
    """The exchanges and the local steps of a transfer task whose blocks are chains of one or two layers."""

    data: FederatedData
    task: Task
    chains: dict[int, Chain]
    links: Links
    cipher: Cipher
    ciphertexts: TransferCiphertexts
    hear: Callable[[Mapping[int, Tensor], Batch, int, int], None] | None = None  # B's gradients, A and the step
    count: CountRead = nobody_counts
    _told: dict[int, EncryptedTerms[Any]] = field(default_factory=dict)  # by the silo that was told, of this round
    _signed: dict[int, Any] = field(default_factory=dict)  # what the silo with the labels made of it
    _next_call: NextCall = field(init=False)
    _batch: Batch = field(init=False)
    scores_in_clear: ClassVar[bool] = False  # nor is anything else

    @cached_property
    def _sides(self) -> dict[int, Side]:
        point = self.cipher.point
        return {j: Side(self.data.silos[j].name, chain, point) for j, chain in self.chains.items()}

    def told(self, local_steps: int) -> dict[int, Sums]:
        """What the silo without labels learns of a batch."""
        (other,) = (j for j in self.chains if not self.task.holds_head(j))
        chain = self.chains[other]
        read = local_steps * sum(layer.size for layer in chain)
        count = label_sums(chain, local_steps=local_steps)
        return {other: Sums(count, read, fresh=len(chain) > 1, gradients=local_steps)}

    @property
    def _transfer(self) -> Tie:
        assert self.task.transfer is not None
        return self.task.transfer

    def exchange(self, frozen: Frozen, known: Mapping[int, LossInputs], batch: Batch, asked: Asked) -> Frozen:
        """Each receiver gets the other's components, which it cannot read."""
        require_one_batch(batch)
        self._next_call, self._batch = asked.next_call, batch
        holder, receivers = asked.holder, asked.receivers
        seconds = {}
        for j in receivers:
            plain = self._plain(j, known[j], holder)
            self._told[j], seconds[j] = self.ciphertexts.tell(1 - j, plain)
        width = self.chains[0][-1].outputs  # a ciphertext per number of the rows, and of half of a symmetric matrix
        components = self.cipher.ciphertexts(batch.rows * width + width * (width + 1) // 2)
        self._across([1 - j for j in receivers], seconds, [components] * len(receivers), "components")
        if holder in receivers:
            told, inputs = self._told[holder], known[holder]
            assert inputs.y is not None
            signs = (2 * inputs.y - 1).long().numpy(force=True)
            sums = partial(sum_of_signs, told.rows, signs, threads=self.ciphertexts.threads)
            self._signed[holder], took = self.ciphertexts.work(told, sums)
            self.links.compute(holder, took)
        return frozen

    def _plain(self, receiver: int, inputs: LossInputs, holder: int) -> Plain:
        """What the other side hides from a receiver."""
        assert inputs.rest is not None
        name, point = self.data.silos[1 - receiver].name, self.cipher.point
        rest = inputs.rest.double().numpy(force=True)
        if receiver == holder:
            return Plain.of(rest, rest.T @ rest / len(rest), point, f"an embedding of silo '{name}', or a product,")
        width = rest.shape[1] // 2
        u_a, signed_mean = rest[:, :width], rest[:, width:]
        mean = signed_mean[0]  # up to its sign, which the square does not have
        rows = -signed_mean - 2 * pull(self._transfer) * u_a
        return Plain.of(rows, mean[:, None] * mean, point, f"an embedding of silo '{name}', or a product,")

    def solve(
        self, problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, strategy: Strategy,
        threads: int, chosen: dict[str, set[str]], passes: Sequence[KeptPass | None] = (),  # noqa: ARG002
    ) -> list[Tensor]:  # fmt: skip
        """Local steps, each with a gradient that the other side reads masked."""
        if strategy not in ("auto", "loop"):
            raise ConfigError(f"run.strategy = {strategy!r} is not for transfer: use 'auto' or 'loop'")
        answers: dict[int, list[Answer]] = {}
        solved = []
        for problem, weight in zip(problems, weights, strict=True):
            answers[problem.silo] = []
            chosen[problem.task.names[problem.silo]] = {"loop"}
            state = None if problem.state is None else problem.state[0]
            gradient = partial(self._gradient, problem, answers[problem.silo])
            found = descend_along(problem, problem.start.reshape(-1), state, gradient)
            solved.append(found.unsqueeze(0) if keep else found * weight.to(found))
        for step in range(problems[0].local.steps):
            self._send({j: mine[step] for j, mine in answers.items()}, problems[0].parts[0].x.shape[0])
        return solved

    def _gradient(self, problem: Problem, answers: list[Answer], _: int, flat: Tensor) -> tuple[Tensor, None]:
        """The data's part of the gradient (p,) at a side's vector; what it took is noted in `answers`."""
        side, told, part = self._sides[problem.silo], self._told[problem.silo], problem.parts[0]
        block, held = self.task.split(problem.silo, flat)
        forward = side.through(block, part.x)
        compute = self._without_labels if problem.anchors is None else self._with_labels
        rows = len(part.x)
        count = partial(self.count, self.data.silos[problem.silo].name, self._batch.parts[0])
        answer = self.ciphertexts.gradient(
            told, compute(problem, side, forward), self._slots(problem.silo, rows), count
        )
        answers.append(answer)
        hidden = side.flat(decode(answer.numbers, side.sizes, self.cipher.point, rows)).to(block)
        if self.hear is not None and held is None:
            self.hear({problem.silo: torch.stack([hidden, block])}, self._batch, 1 - problem.silo, len(answers) - 1)
        found = hidden + clear_gradient(problem, forward)
        return found if held is None else torch.cat([found, torch.zeros_like(held)]), None

    def _without_labels(self, problem: Problem, side: Side, forward: ChainPass) -> Callable[[], list[Any]]:
        told = self._told[problem.silo]
        half = side.half(forward.outputs[-1][0], "an embedding")
        return partial(
            gradient_without_labels, told.rows, told.square, half, side.own_pass(forward), side.point.bound,
            threads=self.ciphertexts.threads,
        )  # fmt: skip

    def _with_labels(self, problem: Problem, side: Side, forward: ChainPass) -> Callable[[], list[Any]]:
        told, anchors, weight = self._told[problem.silo], problem.anchors, pull(self._transfer)
        assert anchors is not None
        x, y = anchors.of_round
        over_all = side.through(forward.weights[0], x)
        mean = self._transfer.class_mean(over_all.outputs[-1][0], y)
        times_mean = side.half(len(problem.parts[0].x) * mean, "the class mean times the samples, a number")
        samples = side.own_pass(forward, -2 * weight) if weight else None
        return partial(
            gradient_with_labels, told.rows, told.square, self._signed[problem.silo], times_mean,
            side.mean_pass(over_all, 2 * y - 1), samples, side.point.bound, threads=self.ciphertexts.threads,
        )  # fmt: skip

    def _slots(self, silo: int, rows: int) -> Slots:
        chain = self.chains[silo]
        return transfer_slots(self.cipher.point, rows, chain[-1].outputs, len(chain), self.cipher.key_bits)

    def _send(self, answers: dict[int, Answer], rows: int) -> None:
        """A local step's messages: masked gradients to the owners of the keys, and back what these read."""
        silos, cipher = list(answers), self.cipher
        packed = [self._slots(j, rows).plaintexts(sum(self._sides[j].sizes)) for j in silos]
        multiply = {1 - j: answers[j].multiply for j in silos}
        self._across(silos, multiply, [cipher.ciphertexts(n) for n in packed], "masked_gradients")
        decrypt = {j: answers[j].decrypt for j in silos}
        self._across([1 - j for j in silos], decrypt, [cipher.plaintexts(n) for n in packed], "read_gradients")

    def _across(
        self, senders: Sequence[int], seconds: dict[int, float], contents: Sequence[Specs], exchange: str
    ) -> None:
        """Each sender works for so long on its message, by receiver, and sends it to the other side."""
        for j in senders:
            self.links.compute(j, seconds[1 - j])
        call, clocks = self._next_call(exchange, self._batch.round), [one.clocks.hubs for one in self.links.every]
        before = np.stack(clocks)
        after = before.copy()
        for j, content in zip(senders, contents, strict=True):
            for hubs, now in zip(clocks, before, strict=True):
                hubs[:] = now  # who sends did not wait for what it gets
            direction: Direction = "up" if self.task.holds_head(1 - j) else "down"
            self.links.send(None, HubLeg(call, direction, [j], [1 - j], [content]))
            after[:, 1 - j] = [hubs[1 - j] for hubs in clocks]
        for hubs, now in zip(clocks, after, strict=True):
            hubs[:] = now
