"""The line over gRPC with mutual TLS, held to what any line must do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crosshatch.testing.check_line import LINE_CHECKS, Lines
from tests.runtime.grpc_lines import GrpcLines


@pytest.mark.parametrize("check", LINE_CHECKS)
def test_over_grpc(check: Callable[[Lines], None]) -> None:
    check(GrpcLines())
